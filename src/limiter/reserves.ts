import type { AppliedRule } from "../request/applied-rule.ts";
import { type RuleCounter, ruleCounterOf } from "./counters.ts";

/**
 * Quota that a decision has charged under one rule, and that is settled when the true cost is known.
 * A reserve is plain data, because `WeirService` returns it to other Workers.
 */
export interface Reserve {
  /** The quota that was charged in each window of the rule. */
  readonly cost: number;
  /** The number of the charged window, for each window of the rule. */
  readonly windows: readonly number[];
  /** The charged shard, for each window of the rule. Missing if the rule has no shards. */
  readonly shards?: readonly number[];
  /**
   * The first characters of the charged client's identity, which is a hash. Only the reserve of a
   * program's call has this field and the next ones. `settle` refuses the reserve of another client.
   */
  readonly client?: string;
  /** The name of the rule. `settle` refuses the reserve of another rule. */
  readonly rule?: string;
  /** The option `tier` of the call. */
  readonly tier?: string;
  /**
   * The prefix of the charged counters, the length of each window, and `+` if its quota rolls over.
   * If a deploy has changed one of them, `settle` gives nothing back, because the new counters were
   * never charged.
   *
   * @example "weir,1h,1d+"
   */
  readonly counters?: string;
}

/** Returns the counters that give back a part of a reserve, one for each window of the rule. */
export function refundCountersOf(
  appliedRule: AppliedRule,
  prefix: string,
  reserve: Reserve,
  quota: number,
): RuleCounter[] {
  const { shards } = reserve;
  const ruleCounters = appliedRule.windows.map((window, index) =>
    ruleCounterOf(appliedRule, window, prefix, { cost: -quota }, shards?.[index]),
  );
  return inWindowsOf(reserve, ruleCounters);
}

/** Returns the counters so that `adjust` changes them only in the windows of a reserve. */
export function inWindowsOf(
  { windows }: Reserve,
  ruleCounters: readonly RuleCounter[],
): RuleCounter[] {
  return ruleCounters.map((ruleCounter, index) => ({
    ...ruleCounter,
    counter: { ...ruleCounter.counter, chargedIn: windows[index] as number },
  }));
}
