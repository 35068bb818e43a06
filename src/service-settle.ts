import { isRecord } from "./config/fields.ts";
import { MAX_LIMIT } from "./config/limits.ts";
import { isSettled, type Reserve } from "./limiter/counters.ts";
import { CLIENT_OPTIONS, type ClientOptions, checkCost } from "./service-options.ts";
import { counterNameOf, type ServiceRule } from "./service-rule.ts";

/** Options of the method `settle` of `WeirService`. `key` and `tier` are those of the call `limit`. */
export interface SettleOptions extends ClientOptions {
  /** The field `reserved` of the result of `limit`. Settle it once. */
  readonly reserved: Reserve;
  /** The quota that was used in the end, a whole number from 0 to 999,999,999,999,999. */
  readonly used: number;
}

export const SETTLE_OPTIONS = { ...CLIENT_OPTIONS, reserved: "any", used: "any" } as const;

/**
 * The number of characters in the field `client` of a reserve. Four characters have 24 bits: enough
 * to notice a mistake, and too few to find out the client.
 */
const CLIENT_DIGITS = 4;

/** Returns the fields of a program's reserve that identify the counters that it charges. */
export function reserveOriginOf({ configured, tier, prefix }: ServiceRule) {
  const { rule, windows, identity } = configured;
  return {
    client: identity.slice(0, CLIENT_DIGITS),
    rule: rule.name,
    ...(tier !== undefined && { tier }),
    counters: [prefix, ...windows.map(counterNameOf)].join(),
  } satisfies Partial<Reserve>;
}

/**
 * Checks the options of a call, and returns the quota to charge in addition to the reserve.
 *
 * @returns `cost`, which is negative if quota is given back, and `hasEnded`: whether a deploy has
 * replaced the counters that were charged. Then nothing is given back
 * @throws {RangeError} if the rule has no reserve, or if `used` is not a whole number
 * @throws {TypeError} if `reserved` is not the reserve of a call with this rule, tier and
 * key
 */
export function settlementOf(
  serviceRule: ServiceRule,
  { reserved, used }: SettleOptions,
): { cost: number; hasEnded: boolean } {
  const { rule, windows } = serviceRule.configured;
  if (!isSettled(rule) || typeof rule.cost === "number") {
    throw new RangeError(
      `The rule "${rule.name}" has no cost with a reserve, so it has nothing to settle.`,
    );
  }
  if (!isReserve(reserved)) {
    throw new TypeError(
      "The option reserved must be the field reserved of a result of limit, for the same rule and tier.",
    );
  }
  const current = reserveOriginOf(serviceRule);
  // A reserve that an earlier version of Weir returned may lack these fields.
  const { rule: name = current.rule, client = current.client } = reserved;
  if (name !== current.rule) throw belongsTo("rule", "the name of the rule");
  if (client !== current.client) throw belongsTo("client", "the key");
  const { counters = current.counters } = reserved;
  const hasOtherCounters = counters !== current.counters;
  // Tiers whose windows have the same lengths share their counters.
  if (hasOtherCounters && reserved.tier !== serviceRule.tier) throw belongsTo("tier", "the tier");
  if (used === undefined)
    throw new TypeError("The option used is missing: the quota that was used.");
  checkCost(used, 0);
  const hasEnded = hasOtherCounters || !fits(reserved, windows.length, rule.shards);
  const cost = used - reserved.cost;
  return { cost: hasEnded ? Math.max(0, cost) : cost, hasEnded };
}

function belongsTo(what: string, option: string): TypeError {
  return new TypeError(
    `The option reserved belongs to another ${what}. Pass ${option} of the call limit to settle.`,
  );
}

/** Whether the counters that a reserve has charged still exist. */
function fits({ windows, shards }: Reserve, windowCount: number, shardCount: number): boolean {
  if (windows.length !== windowCount || (shards !== undefined) !== shardCount > 1) return false;
  return shards?.every((shard) => shard < shardCount) ?? true;
}

function isReserve(value: unknown): value is Reserve {
  if (!isRecord(value) || !isInteger(value.cost, 0, MAX_LIMIT)) return false;
  const { windows, shards } = value;
  const { MIN_SAFE_INTEGER, MAX_SAFE_INTEGER } = Number;
  if (!isListOf(windows, MIN_SAFE_INTEGER) || windows.length === 0) return false;
  return shards === undefined || (isListOf(shards, 0) && shards.length === windows.length);

  function isListOf(list: unknown, min: number): list is number[] {
    return Array.isArray(list) && list.every((each) => isInteger(each, min, MAX_SAFE_INTEGER));
  }
}

function isInteger(value: unknown, min: number, max: number): boolean {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}
