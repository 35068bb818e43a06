import type { Rule, Window } from "../../../src/config/rule.ts";
import type { Config } from "../../../src/config/schema.ts";
import { type Counter, windowAt } from "../../../src/engine/counter.ts";
import { rollsOver, ruleCountersOf } from "../../../src/limiter/counters.ts";
import { matchesByPlace } from "../rule-reads.ts";

/**
 * Whether the compact engine can decide a rule: each address, or network, is a client, and the host, the method and the
 * path alone decide whether the rule counts a request. Most rules are so simple.
 */
export function isCompactRule(rule: Rule): boolean {
  const { key, cost, windows, mode } = rule;
  const isPlain =
    [rule.count, rule.tiers, rule.exempt, rule.banMs, rule.escalation].every(
      (each) => each === undefined,
    ) &&
    rule.shards === 1 &&
    !rule.spread;
  return (
    isPlain &&
    mode !== "mark" &&
    typeof cost === "number" &&
    cost > 0 &&
    key.length === 1 &&
    key[0]?.[0]?.kind === "ip" &&
    windows.every((window) => !window.calendar && !rollsOver(window)) &&
    matchesByPlace(rule)
  );
}

/** One limit of a rule, in the window of the current time. */
export class CompactWindow {
  /** The index among the counters of a client. */
  readonly index: number;
  readonly policy: string;
  /** The counter of a client without a name. */
  readonly counter: Counter;
  /** The number of the current window. */
  number = Number.NEGATIVE_INFINITY;
  endsAt = Number.NEGATIVE_INFINITY;

  constructor(index: number, { policy }: Window, counter: Counter) {
    this.index = index;
    this.policy = policy;
    this.counter = counter;
  }

  /** @param now never earlier than in earlier calls */
  advance(now: number): void {
    if (now < this.endsAt) return;
    const { index, endsAt } = windowAt(now, this.counter);
    this.number = index;
    this.endsAt = endsAt;
  }

  /** Whether no request ever has quota, so that no store is called. */
  get deniesCertainly(): boolean {
    return this.counter.ceiling === 0;
  }
}

/** A rule, with its limits. */
export interface CompactRule {
  /** The index of the rule among the replayed rules. */
  readonly index: number;
  readonly rule: Rule;
  readonly isShadow: boolean;
  readonly windows: readonly CompactWindow[];
}

/** Prepares rules that are all compact. */
export function compactRulesOf(
  rules: readonly Rule[],
  { prefix }: Pick<Config, "prefix">,
): CompactRule[] {
  let next = 0;
  return rules.map((rule, index) => {
    const { windows, mode } = rule;
    const ruleCounters = ruleCountersOf({ rule, windows, identity: "" }, prefix);
    return {
      index,
      rule,
      isShadow: mode === "shadow",
      windows: ruleCounters.map(
        ({ window, counter }) => new CompactWindow(next++, window, counter),
      ),
    };
  });
}
