import type { Rule } from "../../src/config/rule.ts";
import { type Counter, windowAt, windowStart } from "../../src/engine/counter.ts";
import { countersOf, type RuleCounter, ruleCountersOf } from "../../src/limiter/counters.ts";

/** A counter of a client with an empty identity, and its window at the time of the current request. */
export interface TemplateCounter {
  readonly counter: Counter;
  window: number;
  startsAt: number;
  endsAt: number;
}

/** What the clients of a rule have in common. Their counters differ only in their keys. */
export class ClientTemplate {
  readonly rule: Rule;
  /** The index of the rule among the replayed rules. */
  readonly index: number;
  readonly prefix: string;
  /** The counters of a client with an empty identity, which ends their keys. */
  readonly ruleCounters: readonly RuleCounter[];
  readonly counters: readonly Counter[];
  readonly #current: readonly TemplateCounter[];

  constructor(rule: Rule, index: number, prefix: string) {
    this.rule = rule;
    this.index = index;
    this.prefix = prefix;
    this.ruleCounters = ruleCountersOf({ rule, windows: rule.windows, identity: "" }, prefix);
    this.counters = countersOf(this.ruleCounters);
    this.#current = this.counters.map((counter) => {
      return { counter, window: 0, startsAt: 0, endsAt: 0 };
    });
  }

  /** Returns a counter with the window that contains a time. The object is valid until the next call. */
  at(index: number, now: number): TemplateCounter {
    const current = this.#current[index] as TemplateCounter;
    if (now < current.startsAt || now >= current.endsAt) {
      const { index: window, endsAt } = windowAt(now, current.counter);
      current.window = window;
      current.startsAt = windowStart(current.counter, window);
      current.endsAt = endsAt;
    }
    return current;
  }
}
