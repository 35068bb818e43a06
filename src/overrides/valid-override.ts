import { isRecord } from "../config/fields.ts";
import { MAX_LIMIT } from "../config/limits.ts";
import type { Override } from "./override.ts";
import { MAX_FACTOR } from "./override-windows.ts";

const MODES: readonly unknown[] = ["enforce", "shadow", "off"];

/**
 * Whether this version understands an override that the control object sent. During a deploy, another
 * version may have set it. Fields that this version does not know are allowed.
 *
 * This is no schema, because an isolate may load 10,000 overrides while a request waits.
 */
export function isUnderstood(given: unknown): given is Override {
  if (!isRecord(given)) return false;
  const { rule, client, effect, expiresAt } = given;
  if (typeof rule !== "string" || !Number.isFinite(expiresAt) || !isRecord(effect)) return false;
  if (client === undefined) return isRuleEffect(effect);
  return typeof client === "string" && isClientEffect(effect);
}

function isRuleEffect({ mode, factor }: Record<string, unknown>): boolean {
  if (mode === undefined && factor === undefined) return false;
  return (mode === undefined || MODES.includes(mode)) && (factor === undefined || isFactor(factor));
}

function isClientEffect({ kind, factor, limits }: Record<string, unknown>): boolean {
  if (kind === "factor") return isFactor(factor);
  if (kind === "limits") return isRecord(limits) && Object.values(limits).every(isLimit);
  return kind === "unlimited" || kind === "blocked";
}

function isFactor(value: unknown): boolean {
  return typeof value === "number" && value >= 0 && value <= MAX_FACTOR;
}

function isLimit(value: unknown): boolean {
  return Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_LIMIT;
}
