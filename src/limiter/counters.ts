import type { Rule, Window } from "../config/rule.ts";
import { formatWindow } from "../config/windows.ts";
import type { Counter } from "../engine/counter.ts";
import type { AppliedRule } from "../request/applied-rule.ts";
import { costBefore, dependsOnResponse, isChargedByResponse } from "./rule-cost.ts";
import { pickShards, type ShardPair, shardQuota } from "./shards.ts";
import { spreadOf } from "./spread.ts";

/**
 * Options of a decision. The defaults are for a request. A program's call may set different values.
 */
export interface DecideOptions {
  /**
   * Quota to take. A negative cost gives quota back.
   *
   * @default the cost that the request determines, else the rule's cost if it is a number, else 1
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
  /**
   * Returns a number from 0 to less than 1, to choose between shards.
   *
   * @default Math.random
   */
  readonly random?: () => number;
}

/** A counter, with the rule and the window to which it belongs. */
export interface RuleCounter {
  readonly appliedRule: AppliedRule;
  readonly rule: Rule;
  readonly window: Window;
  /** The maximum count if nothing is reserved: the window's capacity, or a shard's share of it. */
  readonly capacity: number;
  readonly counter: Counter;
  /** The two shards between which the store can choose; undefined if the rule has no shards. */
  readonly shards?: ShardPair;
}

/**
 * Returns the counters of a request, one for each window of the rule. If the rule has several
 * shards, the store can choose between two of them for each counter. The two shards are the same
 * for all windows.
 *
 * @param decided the shards that have decided the request, if the counters are for a later charge. These
 * shards had quota left, and other shards may have none
 */
export function ruleCountersOf(
  appliedRule: AppliedRule,
  prefix: string,
  options: DecideOptions = {},
  decided?: ShardPair,
): RuleCounter[] {
  const { rule, windows } = appliedRule;
  const shards =
    decided ?? (rule.shards > 1 ? pickShards(usedShards(appliedRule), options.random) : undefined);
  return windows.map((window): RuleCounter => {
    const ruleCounter = ruleCounterOf(appliedRule, window, prefix, options, shards?.[0]);
    if (!shards) return ruleCounter;
    // The shard with the higher number comes second, because its share is never larger.
    const { counter: alternative } = ruleCounterOf(appliedRule, window, prefix, options, shards[1]);
    return { ...ruleCounter, counter: { ...ruleCounter.counter, alternative }, shards };
  });
}

/**
 * Returns how many of a rule's shards have a part of every limit. Only a live override can make a limit
 * smaller than the number of shards. The other shards would deny requests although quota is left.
 */
export function usedShards({ rule, windows }: AppliedRule): number {
  let used = rule.shards;
  for (const { limit } of windows) used = Math.min(used, limit);
  return Math.max(2, used);
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

/** @param shard the number of a shard; undefined if the rule has one counter for each window */
export function ruleCounterOf(
  appliedRule: AppliedRule,
  window: Window,
  prefix: string,
  options: DecideOptions,
  shard: number | undefined,
): RuleCounter {
  const { rule, identity, reach, cost } = appliedRule;
  const counted = shard === undefined ? identity : `${identity}#${shard}`;
  const share = (quota: number) =>
    shard === undefined ? quota : shardQuota(quota, rule.shards, shard);
  const { windowMs } = window;
  const [limit, capacity] = [share(window.limit), share(window.capacity)];
  const reservable = options.reserve ? share(window.maxReserved) : 0;
  const rolls = rollsOver(window);
  const counter: { -readonly [Field in keyof Counter]: Counter[Field] } = {
    key: `${prefix}:${rule.name}:${labelOf(window)}:${counted}`,
    identity: counted,
    limit,
    windowMs,
    offsetMs: rule.spread ? spreadOf(identity, windowMs) : window.offsetMs,
    cost: options.cost ?? cost ?? costBefore(rule.cost),
    ceiling: capacity + reservable,
  };
  // These fields are assigned one by one, because a spread into the literal takes time. Most
  // counters have at most one of these fields.
  if (reach !== undefined) counter.reach = reach;
  if (window.calendar) counter.calendar = window.calendar;
  if (isLeasable(rule, rolls)) counter.leasable = true;
  if (rolls) counter.rollsOver = true;
  if (rule.mode === "shadow") counter.shadow = true;
  if (rule.mode === "mark") counter.dependent = true;
  if (options.checkOnly || isChargedByResponse(rule)) counter.checkOnly = true;
  if (rule.banMs !== undefined) counter.banMs = rule.banMs;
  if (rule.escalation) counter.escalation = rule.escalation;
  // A request that takes no quota exceeds no limit.
  if (options.checkOnly || counter.cost === 0) counter.neverBans = true;
  return { appliedRule, rule, window, capacity, counter };
}

const labels = new Map<number, string>();

/** Returns the length of a window as a text for keys. Each length is formatted only once. */
function labelOf(window: Window): string {
  const { windowMs, calendar } = window;
  if (calendar) return calendar.unit;
  const cached = labels.get(windowMs);
  if (cached !== undefined) return cached;
  const label = formatWindow(window);
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
  return lease && banMs === undefined && !rolls && shards === 1 && !dependsOnResponse(rule);
}

/** Whether unused quota or reservations carry over to later windows. */
export function rollsOver({ limit, capacity, maxReserved }: Window): boolean {
  return capacity > limit || maxReserved > 0;
}
