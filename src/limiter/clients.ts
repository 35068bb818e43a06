import type { Window } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { counterId, type Demand, type Tally, withCost } from "../engine/counter.ts";
import { hasQuota } from "../engine/fixed-window.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import type { Store } from "../stores/store.ts";
import { allCountersOf, countersOf, type RuleCounter, ruleCounterOf, timeOf } from "./counters.ts";
import { type Quota, quotasOf } from "./decision.ts";

/** A client's state under one rule, from the store. */
export interface ClientState {
  /** One quota for each window of the applied rule. `violated`: a request that costs 1 is denied. */
  readonly quotas: readonly Quota[];
  /** The quotas under each tier of the rule, by the tier's name. */
  readonly tiers: ReadonlyMap<string, readonly Quota[]>;
  /** Milliseconds until the client's ban ends; 0 if there is none. */
  readonly banMs: number;
  /** Whether the client has used quota in one of the windows, or is banned. */
  readonly isActive: boolean;
  /** The state of each stored counter, one for each window of the applied rule and each shard. */
  readonly counters: readonly CounterTally[];
}

/** A counter and its state. */
export interface CounterTally extends RuleCounter {
  readonly tally: Tally;
}

/** The maximum number of counters in one call to the store. */
const MAX_COUNTERS = 500;

/**
 * Reads the states of clients in all windows, tiers and shards. Charges nothing.
 *
 * @param prefix the first part of the counters' keys
 * @param now the Worker's time; undefined if the store's clock determines the windows
 * @throws {StoreError} if the store cannot be read
 */
export async function readClients(
  store: Store,
  appliedRules: readonly AppliedRule[],
  prefix: string,
  now: number | undefined,
): Promise<ClientState[]> {
  const counters = new Map<string, RuleCounter>();
  for (const appliedRule of appliedRules) {
    const windows = allAppliedWindowsOf(appliedRule);
    for (const each of allCountersOf({ ...appliedRule, windows }, prefix)) {
      counters.set(readingOf(each), each);
    }
  }
  const tallies = new Map<string, Tally>();
  const all = [...counters];
  for (let at = 0; at < all.length; at += MAX_COUNTERS) {
    const part = all.slice(at, at + MAX_COUNTERS);
    // An adjustment by 0 returns all counts. A decision would not: a denial may lack some of the counts.
    const read = await store.adjust(
      part.map(([, { counter }]) => withCost(counter, 0)),
      now,
    );
    for (const [index, [reading]] of part.entries()) tallies.set(reading, read[index] as Tally);
  }
  return appliedRules.map((each) => stateOf(each, tallies, prefix, now ?? Date.now()));
}

function allAppliedWindowsOf({ rule: { tiers }, windows }: AppliedRule): Window[] {
  return [...windows, ...(tiers ? [...tiers.windows.values()].flat() : [])];
}

/**
 * Returns a text that identifies the state of a counter. Tiers can share a counter although their limits differ. If it
 * rolls over, its count depends on the limit that earlier windows have granted.
 */
function readingOf({ counter }: RuleCounter): string {
  return counter.rollsOver ? `${counterId(counter)}:${counter.limit}` : counterId(counter);
}

function stateOf(
  appliedRule: AppliedRule,
  tallies: ReadonlyMap<string, Tally>,
  prefix: string,
  now: number,
): ClientState {
  const { rule, windows } = appliedRule;
  const countersIn = (each: readonly Window[]) =>
    allCountersOf({ ...appliedRule, windows: each }, prefix).flatMap((ruleCounter) => {
      const tally = tallies.get(readingOf(ruleCounter));
      return tally ? [{ ...ruleCounter, tally }] : [];
    });
  const tallyOf = (window: Window) => sumOf(countersIn([window]).map(({ tally }) => tally));
  const quotasFor = (each: readonly Window[]) =>
    each.map((one) => quotaOf(appliedRule, one, tallyOf(one), now));
  const all = allAppliedWindowsOf(appliedRule).map(tallyOf);
  const banMs = Math.max(0, ...all.map((tally) => tally.banMs));
  return {
    quotas: quotasFor(windows),
    tiers: new Map([...(rule.tiers?.windows ?? [])].map(([tier, each]) => [tier, quotasFor(each)])),
    banMs,
    isActive: banMs > 0 || all.some(({ count }) => count > 0),
    counters: countersIn(windows),
  };
}

/** Returns the state of all shards together. */
function sumOf(tallies: readonly Tally[]): Tally {
  const [first] = tallies;
  if (first && tallies.length === 1) return first;
  const maxOf = (field: "resetMs" | "banMs") => Math.max(0, ...tallies.map((each) => each[field]));
  return {
    count: tallies.reduce((sum, { count }) => sum + count, 0),
    resetMs: maxOf("resetMs"),
    banMs: maxOf("banMs"),
  };
}

function quotaOf(appliedRule: AppliedRule, window: Window, tally: Tally, now: number): Quota {
  const ruleCounter = ruleCounterOf(appliedRule, window, "", { cost: 1 }, undefined);
  const admitted = tally.banMs === 0 && hasQuota(ruleCounter.counter, tally.count);
  const [quota] = quotasOf([ruleCounter], { admitted, tallies: [tally], now });
  return quota as Quota;
}

/**
 * Reads and changes the stored states of clients, for operators and programs. All methods throw a `StoreError` if the
 * call to the store failed. The store may have changed the counters anyway.
 */
export class Clients {
  readonly #config: Pick<Config, "clock" | "prefix">;
  readonly #store: Store;

  constructor(config: Pick<Config, "clock" | "prefix">, store: Store) {
    this.#config = config;
    this.#store = store;
  }

  /** Reads the states of clients, and charges nothing. */
  read(appliedRules: readonly AppliedRule[]): Promise<ClientState[]> {
    return readClients(this.#store, appliedRules, this.#config.prefix, timeOf(this.#config));
  }

  /** Removes a client's counts and reservations in the windows of a rule, and its ban. */
  async reset(appliedRule: AppliedRule): Promise<void> {
    await this.#store.reset(this.#countersOf(appliedRule), timeOf(this.#config));
  }

  /** Removes a client's ban under a rule, and keeps its counts. */
  async liftBan(appliedRule: AppliedRule): Promise<void> {
    const kept = this.#countersOf(appliedRule).map((each) => ({ ...each, keepsCount: true }));
    await this.#store.reset(kept, timeOf(this.#config));
  }

  #countersOf(appliedRule: AppliedRule): Demand[] {
    return countersOf(allCountersOf(appliedRule, this.#config.prefix));
  }
}
