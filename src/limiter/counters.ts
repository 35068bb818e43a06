import type { Cost } from "../config/cost.ts";
import type { Rule, Window } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { formatWindow } from "../config/window.ts";
import type { Demand } from "../engine/counter.ts";
import { newSlotId } from "../engine/slots.ts";
import type { AppliedRule } from "../request/rule-applier.ts";

/** Returns the Worker's time; undefined if the store's clock determines the windows. */
export function timeOf({ clock }: Pick<Config, "clock">, now = Date.now()): number | undefined {
  return clock === "edge" ? now : undefined;
}

/** The number of digits of an identity (a hash) that determine the offset: 48 uniform bits. */
const SPREAD_DIGITS = 8;
const BASE64URL = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/** Returns the offset of a client's windows in milliseconds, for rules with `start: "spread"`. */
function spreadOf(identity: string, windowMs: number): number {
  let number = 0;
  for (const digit of identity.slice(0, SPREAD_DIGITS)) {
    number = number * 64 + Math.max(0, BASE64URL.indexOf(digit));
  }
  return number % windowMs;
}

/**
 * Whether the final cost of a request is unknown when it is admitted: the response determines the
 * cost, or a program settles the reserve.
 */
export function dependsOnResponse({ cost, count }: Rule): boolean {
  if (count !== undefined) return true;
  return typeof cost !== "number" && (cost.settle !== undefined || typeof cost.before === "number");
}

/** Whether a rule charges a reserve before the response, and settles it after the response. */
export function isSettled(rule: Rule): boolean {
  return dependsOnResponse(rule) && !isChargedByResponse(rule);
}

/** Whether a rule charges a request only after its response has arrived. */
export function isChargedByResponse({ cost, count }: Rule): boolean {
  if (count && !count.reserve) return true;
  return typeof cost !== "number" && cost.before === undefined;
}

/**
 * Returns the cost that a rule charges before the response, unless a value of the request determines it. If only the
 * response determines the cost, the client needs a quota of at least 1.
 */
export function costBefore(cost: Cost): number {
  if (typeof cost === "number") return cost;
  return typeof cost.before === "number" ? cost.before : 1;
}

/** Returns a shard's share of a quota. Shares differ by at most 1, and their sum is the quota. */
export function shardQuota(quota: number, shards: number, shard: number): number {
  return Math.floor(quota / shards) + (shard < quota % shards ? 1 : 0);
}

/** Options of a decision. The defaults are those of a request; a program's call may set other values. */
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
   * Aborted when the client hangs up. With a signal, the request may wait for its turn under rules with `wait`.
   *
   * @default undefined: the request does not wait
   */
  readonly signal?: AbortSignal;
  /**
   * Returns the applied rules with the live overrides of this moment, for a request that is decided again after a wait.
   *
   * @default the rules of the first decision
   */
  readonly current?: () => readonly AppliedRule[];
  /**
   * Whether the request may pass before the store has decided it, under rules with `async`.
   *
   * @default false
   */
  readonly ahead?: boolean;
  /**
   * Whether to decide without a charge.
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
  /** The maximum count without quota of later windows: the window's capacity, or a shard's share of it. */
  readonly capacity: number;
  readonly counter: Demand;
  /** The shard that counts the request; undefined if the rule has no shards. */
  readonly shard?: number;
  /**
   * Present if the cost is too high for every window and every shard, so that no retry of the request can pass. Never
   * present while an operator blocks the client, because the block ends.
   */
  readonly misfit?: Misfit;
}

/** A cost that a policy can never admit. */
export interface Misfit {
  readonly window: Window;
  readonly cost: number;
  /** The highest cost that the policy can admit, with all the quota that the request may reserve. */
  readonly maxCost: number;
}

/**
 * Returns the counters of a request, one for each window of the rule. If the rule has several shards, one shard
 * counts the request in all windows.
 *
 * @param decidedBy the shard that has decided the request, for a later charge. Other shards may have no quota left
 */
export function ruleCountersOf(
  appliedRule: AppliedRule,
  prefix: string,
  options: DecideOptions = {},
  decidedBy?: number,
): RuleCounter[] {
  const { rule, windows } = appliedRule;
  const isSharded = rule.shards > 1;
  const shard = isSharded
    ? (decidedBy ?? Math.floor((options.random ?? Math.random)() * usedShards(appliedRule)))
    : undefined;
  return windows.map((window) => ruleCounterOf(appliedRule, window, prefix, options, shard));
}

/**
 * Returns the number of a rule's shards that have a part of every limit. Only a live override can make a limit
 * smaller than the number of shards. A shard without a part of the limit would deny requests although quota is left.
 */
function usedShards({ rule, windows }: AppliedRule): number {
  let used = rule.shards;
  for (const { limit } of windows) used = Math.min(used, limit);
  return Math.max(1, used);
}

/**
 * Returns the windows of a rule and of all its tiers. Windows of the same length share a counter if both or neither
 * of them roll over. Of the windows that share a counter, returns only the last one.
 */
export function allWindowsOf({ windows, tiers }: Pick<Rule, "windows" | "tiers">): Window[] {
  const all = [...windows, ...(tiers ? [...tiers.windows.values()].flat() : [])];
  return [...new Map(all.map((window) => [counterNameOf(window), window])).values()];
}

/** Returns a name that is unique among the counters of a rule. */
export function counterNameOf(window: Window): string {
  return withSubWindows(formatWindow(window), window) + (rollsOver(window) ? "+" : "");
}

/** Each number of sub-windows has counters of its own, because their counts differ. */
function withSubWindows(label: string, { sliding }: Window): string {
  return sliding === undefined ? label : `${label}/${sliding}`;
}

/** Returns all counters of a client under a rule, one for each window and each shard. */
export function allCountersOf(appliedRule: AppliedRule, prefix: string): RuleCounter[] {
  const { rule, windows } = appliedRule;
  const shards = rule.shards > 1 ? Array.from({ length: rule.shards }, (_, i) => i) : [undefined];
  return windows.flatMap((window) =>
    shards.map((shard) => ruleCounterOf(appliedRule, window, prefix, { cost: 0 }, shard)),
  );
}

export function countersOf(ruleCounters: readonly RuleCounter[]): Demand[] {
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
  if (window.concurrent) return slotCounterOf(appliedRule, window, prefix, options);
  const counted = shard === undefined ? identity : `${identity}#${shard}`;
  const share = (quota: number) =>
    shard === undefined ? quota : shardQuota(quota, rule.shards, shard);
  const { sliding = 1 } = window;
  const windowMs = window.windowMs / sliding;
  const [limit, capacity] = [share(window.limit), share(window.capacity)];
  const rolls = rollsOver(window);
  const counter: Writable<Demand> = {
    key: `${prefix}:${rule.name}:${labelOf(window)}:${counted}`,
    identity: counted,
    limit,
    windowMs,
    offsetMs: rule.spread ? spreadOf(identity, windowMs) : window.offsetMs % windowMs,
    cost: options.cost ?? cost ?? costBefore(rule.cost),
    ceiling: capacity,
  };
  if (options.reserve) counter.ceiling += share(window.maxReserved);
  // These fields are assigned one by one, because a spread takes more time. Most counters have at most one of these
  // fields.
  if (reach !== undefined) counter.reach = reach;
  if (shard !== undefined) counter.shard = { client: identity, number: shard };
  if (window.calendar) counter.calendar = window.calendar;
  if (isLeasable(rule, window)) counter.leasable = true;
  if (window.sliding !== undefined) counter.subWindows = sliding;
  if (rolls) counter.rollsOver = true;
  if (rule.mode === "shadow") counter.shadow = true;
  if (rule.mode === "mark") counter.marks = true;
  if (options.checkOnly || isChargedByResponse(rule)) counter.checkOnly = true;
  if (rule.ban) counter.ban = rule.ban;
  if (rule.notify) {
    const { tier } = appliedRule;
    counter.notify = {
      rule: rule.name,
      policy: window.policy,
      tier,
      shares: rule.notify,
      capacity,
    };
  }
  // A request that takes no quota exceeds no limit.
  if (options.checkOnly || counter.cost === 0) counter.neverBans = true;
  const ruleCounter: Writable<RuleCounter> = { appliedRule, rule, window, capacity, counter };
  if (shard !== undefined) ruleCounter.shard = shard;
  if (counter.cost > counter.ceiling) addMisfit(ruleCounter, maxCostOf(ruleCounter, options));
  return ruleCounter;
}

type Writable<Each> = { -readonly [Field in keyof Each]: Each[Field] };

/** An operator's block is a limit of 0, but it ends. */
function addMisfit(ruleCounter: Writable<RuleCounter>, maxCost: number): void {
  const { appliedRule, window, counter } = ruleCounter;
  const { cost } = counter;
  if (cost <= maxCost || appliedRule.blockedUntil !== undefined) return;
  ruleCounter.misfit = { window, cost, maxCost };
}

/** Returns the highest cost that a counter can ever admit. The ceiling may be lower in a smaller shard. */
function maxCostOf({ rule, window, shard }: RuleCounter, options: DecideOptions): number {
  const share = (quota: number) =>
    shard === undefined ? quota : shardQuota(quota, rule.shards, 0);
  const capacity = share(window.capacity);
  return options.reserve ? capacity + share(window.maxReserved) : capacity;
}

/** Whether requests may wait for their turn under a rule. */
export function waits({ mode, waitMs }: Rule): boolean {
  return waitMs > 0 && mode === "enforce";
}

/** Returns the counter of a client's open requests. A request takes one slot, whatever its cost in the windows is. */
function slotCounterOf(
  appliedRule: AppliedRule,
  window: Window,
  prefix: string,
  { cost, checkOnly = false }: DecideOptions,
): RuleCounter {
  const { rule, identity, reach } = appliedRule;
  const { limit, capacity, windowMs } = window;
  const takesSlot = cost !== 0 && !checkOnly;
  const counter: Demand = {
    key: `${prefix}:${rule.name}:${formatWindow(window)}:${identity}`,
    identity,
    limit,
    windowMs,
    offsetMs: 0,
    cost: cost === 0 ? 0 : 1,
    ceiling: limit,
    slot: takesSlot ? newSlotId() : 0,
    ...(reach !== undefined && { reach }),
    ...(rule.mode === "shadow" && { shadow: true }),
    ...(rule.mode === "mark" && { marks: true }),
    ...(checkOnly && { checkOnly }),
  };
  const ruleCounter = { appliedRule, rule, window, capacity, counter };
  addMisfit(ruleCounter, limit);
  return ruleCounter;
}

/** Returns the counters of quota. Slots are no quota: a response charges none, and a refund gives none back. */
export function quotaCounters(ruleCounters: readonly RuleCounter[]): RuleCounter[] {
  return ruleCounters.filter(({ window }) => !window.concurrent);
}

const labels = new Map<number, string>();

/** Returns the length of a window as a text for keys. Formats each length only once. */
function labelOf(window: Window): string {
  const { windowMs, calendar } = window;
  if (calendar) return calendar.unit;
  let label = labels.get(windowMs);
  if (label === undefined) {
    label = formatWindow(window);
    labels.set(windowMs, label);
  }
  return withSubWindows(label, window);
}

/**
 * Whether isolates may take quota of a rule in blocks. They must not if a ban must apply in all isolates at once, if
 * the count carries over to later windows or sub-windows, if the rule already spreads its quota over shards, or if the
 * cost depends on the response.
 */
export function isLeasable(rule: Rule, window: Window): boolean {
  const { lease, ban, shards } = rule;
  const mayLease = lease && !ban && shards === 1 && !waits(rule) && window.sliding === undefined;
  return mayLease && !rollsOver(window) && !dependsOnResponse(rule);
}

/** Whether unused quota or reservations carry over to later windows. */
export function rollsOver(window: Window): boolean {
  const { limit, capacity, maxReserved } = window;
  return capacity > limit || maxReserved > 0 || window.rollsOver === true;
}

/** The counters of a request, in groups that a store decides. */
export interface CounterGroups {
  /** The counters of all enforced rules form one group, which is charged as a whole or not at all. */
  readonly enforced: RuleCounter[];
  /** Each rule in shadow mode or with the mode `mark` forms its own group, decided whatever the enforced rules say. */
  readonly others: RuleCounter[][];
}

export function emptyGroups(): CounterGroups {
  return { enforced: [], others: [] };
}

/** Adds the counters of a rule to the group of its mode. */
export function addToGroups(groups: CounterGroups, ruleCounters: RuleCounter[]): void {
  if (ruleCounters[0]?.rule.mode === "enforce") groups.enforced.push(...ruleCounters);
  else groups.others.push(ruleCounters);
}

/** Returns the groups for a call to the store: the enforced group first. */
export function storeGroupsOf({ enforced, others }: CounterGroups): Demand[][] {
  const groups = others.map(countersOf);
  if (enforced.length > 0) groups.unshift(countersOf(enforced));
  return groups;
}

/**
 * Quota that a decision has charged under one rule. The reserve is settled when the true cost is known. It is plain
 * data, because `WeirService` returns it to other Workers.
 */
export interface Reserve {
  /** The quota that was charged in each window of the rule. */
  readonly cost: number;
  /** The number of the charged window, for each window of the rule. */
  readonly windows: readonly number[];
  /** The charged shard, for each window of the rule. Missing if the rule has no shards. */
  readonly shards?: readonly number[];
  /**
   * The first characters of the charged client's identity, which is a hash. `settle` refuses the reserve of another
   * client. This field and the next fields exist only after a program's call.
   */
  readonly client?: string;
  /** The name of the rule. `settle` refuses the reserve of another rule. */
  readonly rule?: string;
  /** The option `tier` of the call. */
  readonly tier?: string;
  /**
   * The prefix of the charged counters, and the length of each window, with `+` if its quota rolls over. If a deploy
   * has changed this text, `settle` gives nothing back, because the new counters were never charged.
   *
   * @example "weir,1h,1d+"
   */
  readonly counters?: string;
}

/** Returns counters that `adjust` changes only in the windows of a reserve. */
export function inWindowsOf(
  { windows }: Reserve,
  ruleCounters: readonly RuleCounter[],
): RuleCounter[] {
  return ruleCounters.map((ruleCounter, index) => ({
    ...ruleCounter,
    counter: { ...ruleCounter.counter, chargedIn: windows[index] as number },
  }));
}
