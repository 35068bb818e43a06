import type { ClientEffect, Override, RuleEffect } from "../../overrides/override.ts";
import { countText } from "./format.ts";

/** Returns what an override does, in words. */
export function effectText(override: Pick<Override, "client" | "effect">): string {
  return override.client === undefined
    ? ruleEffectText(override.effect as RuleEffect)
    : clientEffectText(override.effect as ClientEffect);
}

const MODE_TEXTS = {
  enforce: "enforced",
  shadow: "in shadow mode: denies nothing",
  off: "off: does not apply",
} as const;

function ruleEffectText({ mode, factor }: RuleEffect): string {
  const texts: string[] = [];
  if (mode !== undefined) texts.push(MODE_TEXTS[mode]);
  if (factor !== undefined) texts.push(`all limits × ${factor}`);
  return texts.join(", ");
}

function clientEffectText(effect: ClientEffect): string {
  switch (effect.kind) {
    case "limits":
      return Object.entries(effect.limits)
        .map(([policy, limit]) => `${policy}: ${countText(limit)}`)
        .join(", ");
    case "factor":
      return `all limits × ${effect.factor}`;
    case "unlimited":
      return "not limited";
    case "blocked":
      return "blocked: every request is denied";
  }
}
