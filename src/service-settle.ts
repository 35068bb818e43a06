import { isRecord } from "./config/fields.ts";
import { MAX_LIMIT } from "./config/limits.ts";
import { type Reserve, reserveClientOf } from "./limiter/reserves.ts";
import { isSettled } from "./limiter/rule-cost.ts";
import type { AppliedRule } from "./request/applied-rule.ts";
import { CLIENT_OPTIONS, type ClientOptions, checkCost } from "./service-options.ts";

/** Options of the method `settle` of `WeirService`. `key` and `tier` are those of the call `limit`. */
export interface SettleOptions extends ClientOptions {
  /** The field `reserved` of the result of `limit`. Settle it once. */
  readonly reserved: Reserve;
  /** The quota that was used in the end, a whole number from 0 to 999,999,999,999,999. */
  readonly used: number;
}

export const SETTLE_OPTIONS = { ...CLIENT_OPTIONS, reserved: "any", used: "any" } as const;

/**
 * Checks the options of a call, and returns the quota to charge instead of the reserve.
 *
 * @throws {RangeError} if the rule has no reserve, or if `used` is not a whole number
 * @throws {TypeError} if `reserved` is not the reserve of a call with this rule, tier and
 * key
 */
export function usedQuotaOf(appliedRule: AppliedRule, options: SettleOptions): number {
  const { rule, windows } = appliedRule;
  const { cost } = rule;
  if (!isSettled(rule) || typeof cost === "number") {
    throw new RangeError(
      `The rule "${rule.name}" has no cost with a reserve, so it has nothing to settle.`,
    );
  }
  const { reserved, used } = options;
  const shards = rule.shards > 1 ? rule.shards : 0;
  if (!isReserve(reserved, windows.length, shards)) {
    throw new TypeError(
      "The option reserved must be the field reserved of a result of limit, for the same rule and tier.",
    );
  }
  // A reserve that an earlier version of Weir returned may lack the client.
  if (reserved.client !== undefined && reserved.client !== reserveClientOf(appliedRule)) {
    throw new TypeError(
      "The option reserved belongs to another client. Pass the key of the call limit to settle.",
    );
  }
  if (used === undefined)
    throw new TypeError("The option used is missing: the quota that was used.");
  checkCost(used, 0);
  return used;
}

/** @param shards the number of the rule's shards; 0 if it has none */
function isReserve(value: unknown, windows: number, shards: number): value is Reserve {
  if (!isRecord(value) || !isInteger(value.cost, 0, MAX_LIMIT)) return false;
  const hasOneEach = (list: unknown, min: number, max: number) =>
    Array.isArray(list) &&
    list.length === windows &&
    list.every((each) => isInteger(each, min, max));
  const { MIN_SAFE_INTEGER, MAX_SAFE_INTEGER } = Number;
  if (!hasOneEach(value.windows, MIN_SAFE_INTEGER, MAX_SAFE_INTEGER)) return false;
  return shards === 0 ? value.shards === undefined : hasOneEach(value.shards, 0, shards - 1);
}

function isInteger(value: unknown, min: number, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}
