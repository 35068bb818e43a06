import type { Rule, Window } from "../../src/config/rule.ts";
import type { Counter, Row } from "../../src/engine/counter.ts";
import { countersOf, type RuleCounter, ruleCountersOf } from "../../src/limiter/counters.ts";
import type { AppliedRule } from "../../src/request/applied-rule.ts";

/** A rule that counts a request, with the counters to decide. */
export interface AppliedClient {
  /** The index of the rule among the replayed rules. */
  readonly rule: number;
  /** The client, as reports show it. */
  readonly client: string;
  readonly appliedRule: AppliedRule;
  readonly ruleCounters: RuleCounter[];
}

/** A row that writes change in place, so that clients can keep a reference to it. */
export type LiveRow = { -readonly [Field in keyof Row]: Row[Field] };

/** The row of a counter that had none. It belongs to no window. */
const NO_ROW: LiveRow = { window: Number.MIN_SAFE_INTEGER, count: 0, expiresAt: 0 };

/**
 * What the clients of a rule, or of one of its tiers, have in common. Their counters differ only in their keys.
 */
export class ClientTemplate {
  readonly rule: Rule;
  readonly index: number;
  readonly windows: readonly Window[];
  readonly prefix: string;
  /** The counters of a client with an empty identity. */
  readonly ruleCounters: readonly RuleCounter[];
  readonly counters: readonly Counter[];

  /** @param index the index of the rule among the replayed rules */
  constructor(rule: Rule, index: number, windows: readonly Window[], prefix: string) {
    this.rule = rule;
    this.index = index;
    this.windows = windows;
    this.prefix = prefix;
    this.ruleCounters = ruleCountersOf({ rule, windows, identity: "" }, prefix);
    this.counters = countersOf(this.ruleCounters);
  }
}

/**
 * A client that remembers the rows of its counters. Then most decisions neither build a key nor look one up,
 * which would take longer than the decision.
 */
export class RememberedClient implements AppliedClient {
  readonly template: ClientTemplate;
  readonly client: string;
  readonly identity: string;
  /** For each window of the rule: the last row that was found, of this window or of an earlier one. */
  readonly rows: LiveRow[];
  #ruleCounters: RuleCounter[] | undefined;

  constructor(template: ClientTemplate, client: string, identity: string) {
    this.template = template;
    this.client = client;
    this.identity = identity;
    this.rows = template.counters.length === 1 ? [NO_ROW] : template.counters.map(() => NO_ROW);
  }

  get rule(): number {
    return this.template.index;
  }

  get appliedRule(): AppliedRule {
    const { rule, windows } = this.template;
    return { rule, windows, identity: this.identity };
  }

  /** The counters with the client's keys. Only decisions together with other rules need them. */
  get ruleCounters(): RuleCounter[] {
    this.#ruleCounters ??= ruleCountersOf(this.appliedRule, this.template.prefix);
    return this.#ruleCounters;
  }
}
