import type { RuleView } from "../../src/admin/operations.ts";
import type { ClientEffect, RuleEffect } from "../../src/overrides/override.ts";
import { wrongOptions } from "./admin-error.ts";

/** The options that say what an override changes. */
export interface EffectOptions {
  readonly limit?: number;
  readonly limits?: string;
  readonly factor?: number;
  readonly unlimited?: true;
  readonly block?: true;
  readonly mode?: "enforce" | "shadow" | "off";
}

/**
 * Reads the effect of an override for one client.
 *
 * @param rule has the names of the policies
 * @throws {AdminError} unless the options name exactly one effect
 */
export function clientEffect(options: EffectOptions, rule: RuleView): ClientEffect {
  const { limit, limits, factor, unlimited, block, mode } = options;
  if (mode !== undefined) {
    throw wrongOptions(
      "--mode changes a rule for all its clients. For one client, use --unlimited or --block.",
    );
  }
  const effects: ClientEffect[] = [];
  if (limit !== undefined) effects.push({ kind: "limits", limits: onlyLimit(limit, rule) });
  if (limits !== undefined) effects.push({ kind: "limits", limits: readLimits(limits, rule) });
  if (factor !== undefined) effects.push({ kind: "factor", factor });
  if (unlimited) effects.push({ kind: "unlimited" });
  if (block) effects.push({ kind: "blocked" });
  const [effect, ...others] = effects;
  if (effect && others.length === 0) return effect;
  throw wrongOptions(
    "Name exactly one of --limit, --limits, --factor, --unlimited and --block; or --remove.",
  );
}

/**
 * Reads the effect of an override for all clients of a rule.
 *
 * @throws {AdminError} if an option is only for one client, or if there is none
 */
export function ruleEffect({ mode, factor, ...others }: EffectOptions): RuleEffect {
  const [wrong] = (["limit", "limits", "unlimited", "block"] as const).filter(
    (name) => others[name] !== undefined,
  );
  if (wrong !== undefined) {
    throw wrongOptions(
      `--${wrong} needs a client, such as --ip 203.0.113.7. For all clients of the rule, use --factor or --mode.`,
    );
  }
  if (mode === undefined && factor === undefined) {
    throw wrongOptions(
      "Name what to change: --mode or --factor for all clients of the rule; for one client, --ip, --known or --client with --limit, --limits, --factor, --unlimited or --block; or --remove.",
    );
  }
  return { ...(mode !== undefined && { mode }), ...(factor !== undefined && { factor }) };
}

function onlyLimit(limit: number, { name, limits }: RuleView): Record<string, number> {
  const [only, ...others] = limits;
  if (only && others.length === 0) return { [only.policy]: limit };
  throw wrongOptions(
    `The rule ${name} has ${limits.length} windows. Name the limit of each one that you change: --limits ${limits.map(({ policy }) => `${policy}=${limit}`).join(",")}`,
  );
}

/** Reads `search/1m=500,search/1h=9000`. The part before the slash may be left out. */
function readLimits(text: string, { name, limits }: RuleView): Record<string, number> {
  const read: Record<string, number> = {};
  for (const part of text.split(",")) {
    const [, given = "", digits] = /^\s*([^=]+?)\s*=\s*(\d{1,15})\s*$/.exec(part) ?? [];
    const found = limits.find(({ policy }) => policy === given || policy === `${name}/${given}`);
    if (digits === undefined || !found) {
      throw wrongOptions(
        `--limits has "${part.trim()}". Allowed: a policy and a whole number, such as ${limits.map(({ policy, limit }) => `${policy}=${limit}`).join(",")}`,
      );
    }
    read[found.policy] = Number(digits);
  }
  return read;
}
