import type { Rule } from "../../src/config/rule.ts";
import { type Demand, type Tally, windowAt } from "../../src/engine/counter.ts";
import { chargeOf, hasQuota } from "../../src/engine/fixed-window.ts";
import {
  dependsOnResponse,
  type RuleCounter,
  rollsOver,
  ruleCountersOf,
} from "../../src/limiter/counters.ts";
import { type AppliedClient, added, type GroupAnswer, NONE } from "./groups.ts";

// Most rules are plain: the counters of their clients always differ only in their keys. So the object of a client can
// hold its counts. A decision by `decideGroup` of the engine takes 2 to 3 µs, mostly for the keys and the table of
// rows. A decision here takes a tenth of this time, and a replay makes millions of decisions.

/**
 * Whether a rule is plain. A rule with tiers is not, because a client that changes its tier keeps its counts if the
 * windows are equal. Nor is a rule with a limit of 0, which denies without a call to the store, or with `concurrent`.
 */
export function isPlainRule(rule: Rule): boolean {
  const { ban, cost, shards, spread, tiers, windows } = rule;
  const hasConstantCost = typeof cost === "number" && !dependsOnResponse(rule);
  const hasPlainWindows = windows.every(
    (window) => window.limit > 0 && !rollsOver(window) && !window.concurrent,
  );
  return hasConstantCost && hasPlainWindows && shards === 1 && !spread && !ban && !tiers;
}

/**
 * Returns the rules that can be decided here. The enforced rules of a request are decided together, so all or none of
 * them can be decided here.
 */
export function plainRulesOf(rules: readonly Rule[]): Rule[] {
  const areEnforcedPlain = rules.every((rule) => rule.mode !== "enforce" || isPlainRule(rule));
  const canBePlain = ({ mode }: Rule) => areEnforcedPlain || mode !== "enforce";
  return rules.filter((rule) => canBePlain(rule) && isPlainRule(rule));
}

/** The window of a counter at the time of the current request. */
interface CurrentWindow {
  readonly counter: Demand;
  index: number;
  endsAt: number;
}

/** With fewer clients, a rule also keeps those whose windows are over, because most of them return. */
const FIRST_SWEEP = 65_536;

/** The state that the clients of a plain rule share. */
export class PlainRule {
  readonly rule: Rule;
  /** The index of the rule among the replayed rules. */
  readonly index: number;
  readonly prefix: string;
  /** The counters for an empty identity. Their keys lack only the client's identity at the end. */
  readonly ruleCounters: readonly RuleCounter[];
  readonly #windows: readonly CurrentWindow[];
  #clients = new Map<string, PlainClient>();
  #sweepAt = FIRST_SWEEP;

  constructor(rule: Rule, index: number, prefix: string) {
    this.rule = rule;
    this.index = index;
    this.prefix = prefix;
    this.ruleCounters = ruleCountersOf({ rule, windows: rule.windows, identity: "" }, prefix);
    this.#windows = this.ruleCounters.map(({ counter }) => ({ counter, index: 0, endsAt: 0 }));
  }

  /** The number of clients, including some whose windows are over. */
  get size(): number {
    return this.#clients.size;
  }

  get(identity: string): PlainClient | undefined {
    return this.#clients.get(identity);
  }

  /** @param now never earlier than in earlier calls */
  add(identity: string, text: string, now: number): PlainClient {
    if (this.#clients.size >= this.#sweepAt) {
      // Not deleted one by one: V8 links the tables that a map has outgrown, which keeps their clients alive.
      this.#clients = new Map([...this.#clients].filter(([, client]) => !client.isOver(now)));
      this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#clients.size);
    }
    const client = new PlainClient(this, identity, text);
    this.#clients.set(identity, client);
    return client;
  }

  /**
   * Returns a counter's window at a time. The object is valid until the next call.
   *
   * @param now never earlier than in earlier calls
   */
  windowAt(position: number, now: number): CurrentWindow {
    const window = this.#windows[position] as CurrentWindow;
    if (now >= window.endsAt) Object.assign(window, windowAt(now, window.counter));
    return window;
  }
}

/** The quota of one limit that a client has used in a window. */
interface Used {
  window: number;
  count: number;
}

/** The window of a client that has used nothing. */
const NO_WINDOW = Number.MIN_SAFE_INTEGER;

/** A client under a plain rule, with its counts. */
export class PlainClient implements AppliedClient {
  readonly plain: PlainRule;
  readonly identity: string;
  readonly text: string;
  place?: number;
  generation?: number;
  readonly #used: readonly Used[];
  #keyedCounters: readonly RuleCounter[] | undefined;

  constructor(plain: PlainRule, identity: string, text: string) {
    this.plain = plain;
    this.identity = identity;
    this.text = text;
    this.#used = plain.ruleCounters.map(() => ({ window: NO_WINDOW, count: 0 }));
  }

  get index(): number {
    return this.plain.index;
  }

  get rule(): Rule {
    return this.plain.rule;
  }

  get ruleCounters(): readonly RuleCounter[] {
    return this.plain.ruleCounters;
  }

  get keyedCounters(): readonly RuleCounter[] {
    const { rule, prefix } = this.plain;
    this.#keyedCounters ??= ruleCountersOf(
      { rule, windows: rule.windows, identity: this.identity },
      prefix,
    );
    return this.#keyedCounters;
  }

  /** Whether all counters have quota left. */
  hasQuota(now: number): boolean {
    const used = this.#used;
    for (let position = 0; position < used.length; position++) {
      const { index, counter } = this.plain.windowAt(position, now);
      const { window, count } = used[position] as Used;
      if (!hasQuota(counter, window === index ? count : 0)) return false;
    }
    return true;
  }

  /** Charges all counters if the request is admitted, and adds their tallies to a list. */
  charge(now: number, isAdmitted: boolean, before: Tally[]): Tally[] {
    let tallies = before;
    for (let position = 0; position < this.#used.length; position++) {
      const { index, counter, endsAt } = this.plain.windowAt(position, now);
      const used = this.#used[position] as Used;
      if (used.window !== index) {
        used.window = index;
        used.count = 0;
      }
      if (isAdmitted) used.count += chargeOf(counter, used.count);
      tallies = added(tallies, { count: used.count, resetMs: endsAt - now, banMs: 0 });
    }
    return tallies;
  }

  /** Whether all windows in which the client was charged are over. */
  isOver(now: number): boolean {
    return this.#used.every(
      ({ window }, position) => window !== this.plain.windowAt(position, now).index,
    );
  }
}

/** Decides the counters of one group, as `decideGroup` of the engine does. */
export function decidePlain(clients: readonly PlainClient[], now: number): GroupAnswer {
  let admitted = true;
  for (const client of clients) if (!client.hasQuota(now)) admitted = false;
  let tallies: Tally[] = NONE;
  for (const client of clients) tallies = client.charge(now, admitted, tallies);
  return { admitted, tallies };
}

export function arePlain(group: readonly AppliedClient[]): group is readonly PlainClient[] {
  for (const client of group) if (!(client instanceof PlainClient)) return false;
  return true;
}
