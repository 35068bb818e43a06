import { formatDuration } from "../config/duration.ts";
import type { Rule, Window } from "../config/rule.ts";
import type { Counter } from "../engine/counter.ts";
import type { AppliedRule } from "../request/applied-rule.ts";
import { pickShards, type ShardPair, shardQuota } from "./shards.ts";

/**
 * Options of a decision. The defaults are for a request. A program's call may set different values.
 */
export interface DecideOptions {
  /**
   * Quota to take. A negative cost gives quota back.
   *
   * @default the rule's cost if it is a number, else 1
   */
  readonly cost?: number;
  /**
   * Whether the request may reserve quota of later windows, up to the rule's `maxReserved`.
   *
   * @default false
   */
  readonly reserve?: boolean;
  /**
   * Whether to decide without charging anything.
   *
   * @default false
   */
  readonly checkOnly?: boolean;
}

/** A counter, with the rule and the window to which it belongs. */
export interface RuleCounter {
  readonly rule: Rule;
  readonly window: Window;
  /** The maximum count if nothing is reserved: the window's capacity, or a shard's share of it. */
  readonly capacity: number;
  readonly counter: Counter;
}

/**
 * Maps each applied rule to the shards that decided its request. The cost of the response is
 * charged to the same shards.
 */
const decidedBy = new WeakMap<AppliedRule, ShardPair>();

/**
 * Returns the counters of a request, one for each window of the rule. If the rule has several
 * shards, the store can choose between two of them for each counter. The two shards are the same
 * for all windows.
 */
export function ruleCountersOf(
  appliedRule: AppliedRule,
  prefix: string,
  options?: DecideOptions,
): RuleCounter[] {
  const { shards } = appliedRule.rule;
  const pair = shards > 1 ? pickShards(shards) : undefined;
  if (pair) decidedBy.set(appliedRule, pair);
  return countersIn(pair, appliedRule, prefix, options);
}

/**
 * Returns the counters of a request that has been decided. They belong to the shards that decided
 * the request, because those shards had quota left, and other shards may have none.
 */
export function decidedCountersOf(
  appliedRule: AppliedRule,
  prefix: string,
  options?: DecideOptions,
): RuleCounter[] {
  const pair = decidedBy.get(appliedRule);
  return pair
    ? countersIn(pair, appliedRule, prefix, options)
    : ruleCountersOf(appliedRule, prefix, options);
}

function countersIn(
  [shard, other]: ShardPair | readonly [] = [],
  appliedRule: AppliedRule,
  prefix: string,
  options: DecideOptions = {},
): RuleCounter[] {
  return appliedRule.windows.map((window): RuleCounter => {
    const ruleCounter = ruleCounterOf(appliedRule, window, prefix, options, shard);
    if (other === undefined) return ruleCounter;
    // The shard with the higher number comes second, because its share is never larger.
    const { counter: alternative } = ruleCounterOf(appliedRule, window, prefix, options, other);
    return { ...ruleCounter, counter: { ...ruleCounter.counter, alternative } };
  });
}

/** Returns all counters of a client under a rule, one for each window and each shard. */
export function allCountersOf(appliedRule: AppliedRule, prefix: string): RuleCounter[] {
  const { rule, windows } = appliedRule;
  const shards = rule.shards > 1 ? Array.from({ length: rule.shards }, (_, i) => i) : [undefined];
  return windows.flatMap((window) =>
    shards.map((shard) => ruleCounterOf(appliedRule, window, prefix, { cost: 0 }, shard)),
  );
}

export function countersOf(ruleCounters: readonly RuleCounter[]): Counter[] {
  return ruleCounters.map(({ counter }) => counter);
}

function ruleCounterOf(
  { rule, identity }: AppliedRule,
  window: Window,
  prefix: string,
  options: DecideOptions,
  shard: number | undefined,
): RuleCounter {
  const counted = shard === undefined ? identity : `${identity}#${shard}`;
  const share = (quota: number) =>
    shard === undefined ? quota : shardQuota(quota, rule.shards, shard);
  const { windowMs } = window;
  const [limit, capacity] = [share(window.limit), share(window.capacity)];
  const reservable = options.reserve ? share(window.maxReserved) : 0;
  const rolls = rollsOver(window);
  const counter: { -readonly [Field in keyof Counter]: Counter[Field] } = {
    key: `${prefix}:${rule.name}:${labelOf(windowMs)}:${counted}`,
    identity: counted,
    limit,
    windowMs,
    offsetMs: rule.spread ? spreadOf(identity, windowMs) : window.offsetMs,
    cost: options.cost ?? (typeof rule.cost === "number" ? rule.cost : 1),
    ceiling: capacity + reservable,
  };
  // These fields are assigned one by one, because a spread into the literal takes time. Most
  // counters have at most one of these fields.
  if (isLeasable(rule, rolls)) counter.leasable = true;
  if (rolls) counter.rollsOver = true;
  if (rule.mode === "shadow") counter.shadow = true;
  if (options.checkOnly || isChargedByResponse(rule)) counter.checkOnly = true;
  if (rule.banMs !== undefined) counter.banMs = rule.banMs;
  if (options.checkOnly) counter.neverBans = true;
  return { rule, window, capacity, counter };
}

const labels = new Map<number, string>();

/** Returns the length of a window as a text for keys. Each length is formatted only once. */
function labelOf(windowMs: number): string {
  const cached = labels.get(windowMs);
  if (cached !== undefined) return cached;
  const label = formatDuration(windowMs / 1000);
  labels.set(windowMs, label);
  return label;
}

/**
 * Whether isolates may take quota of a rule in blocks. They must not do so if a ban must apply in
 * all isolates at once, if the count carries over to later windows, if the rule already spreads its
 * quota over shards, or if the cost depends on the response.
 */
function isLeasable(rule: Rule, rolls: boolean): boolean {
  const { lease, banMs, shards } = rule;
  return lease && banMs === undefined && !rolls && shards === 1 && !isChargedByResponse(rule);
}

/** Whether unused quota or reservations carry over to later windows. */
export function rollsOver({ limit, capacity, maxReserved }: Window): boolean {
  return capacity > limit || maxReserved > 0;
}

/** Whether the response determines the cost of a request under a rule. */
export function isChargedByResponse({ cost, countStatus }: Rule): boolean {
  return countStatus !== undefined || typeof cost !== "number";
}

/**
 * The number of digits of an identity that determine the offset. These digits are 48 uniform bits
 * of a hash.
 */
const SPREAD_DIGITS = 8;
const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/**
 * Returns the offset of a client's windows in milliseconds, for rules with `start: "spread"`. The
 * offset is always the same for one client. Different clients usually have different offsets, so
 * that their windows do not all begin at once.
 */
function spreadOf(identity: string, windowMs: number): number {
  let number = 0;
  for (const digit of identity.slice(0, SPREAD_DIGITS)) {
    number = number * 64 + Math.max(0, BASE64URL.indexOf(digit));
  }
  return number % windowMs;
}
