import type { Counter, UnusedQuota } from "../../engine/counter.ts";
import { type Answer, type Group, isDependent, type Store, skipped } from "../store.ts";
import { type Denial, DenialCache } from "./denial-cache.ts";
import { tallyOf } from "./snapshot.ts";

/** The maximum number of cached counters. That many counters take less than 2 MB. */
const MAX_COUNTERS = 4096;

/**
 * Wraps a store so that requests are denied from memory while a counter is certainly exhausted.
 *
 * The cache contains counts of denied counters, not denials. So the store still decides a request
 * if its cost is small enough for the quota left, and every request after the limit was raised.
 * Within a window, only refunds, returns and resets lower a count. After such a change, a cached
 * count may be too high, but it is used for at most `MAX_AGE_MS`.
 *
 * @param maxCounters the maximum number of cached counters. Two counters never share an entry,
 * because their whole keys are compared
 */
export function withDenialCache(store: Store, maxCounters = MAX_COUNTERS): Store {
  const cachingStore = new CachingStore(store, maxCounters);
  return {
    decide: (groups, now, unused) => cachingStore.decide(groups, now, unused),
    denialOf: (group, now) => cachingStore.denialOf(group, now),
    adjust: (counters, now, unused) => cachingStore.adjust(counters, now, unused),
    reset: (counters, now) => cachingStore.reset(counters, now),
  };
}

class CachingStore implements Store {
  readonly #store: Store;
  readonly #cache: DenialCache;

  constructor(store: Store, maxCounters: number) {
    this.#store = store;
    this.#cache = new DenialCache(maxCounters);
  }

  decide(
    groups: readonly Group[],
    now?: number,
    unused: readonly UnusedQuota[] = [],
  ): Promise<Answer>[] {
    const time = this.#timeOf(now);
    const known = groups.map((group) => this.#denialAt(group, time));
    const answers = groups.map((_, index) =>
      known[0] && isDependent(groups, index) ? skipped(known[0].now) : known[index],
    );
    // With the returned quota, the next request may be admitted, so it must not be denied from memory.
    this.#removeReturned(unused);
    const open = groups.filter((_, index) => !answers[index]);
    const sentAt = Date.now();
    const isCalled = open.length > 0 || unused.length > 0;
    const decided = isCalled ? this.#store.decide(open, now, unused).values() : [].values();
    return groups.map(async (group, index) => {
      const answer = answers[index];
      if (answer) return answer;
      try {
        const own = await (decided.next().value as Promise<Answer>);
        const isGiven = now !== undefined;
        const answeredAt = this.#timeOf(undefined);
        this.#cache.record(group, own, { sentAt, answeredAt, decidedAt: own.now, isGiven });
        return own;
      } catch (error) {
        const denial = this.#denialAt(group, this.#timeOf(now), true);
        if (!denial) throw error;
        return denial;
      }
    });
  }

  denialOf(group: Group, now?: number): Answer | undefined {
    return this.#denialAt(group, this.#timeOf(now));
  }

  async adjust(counters: Group, now?: number, unused: readonly UnusedQuota[] = []) {
    this.#removeReturned(unused);
    const tallies = await this.#store.adjust(counters, now, unused);
    this.#cache.remove(counters);
    return tallies;
  }

  async reset(counters: Group, now?: number): Promise<void> {
    this.#cache.remove(counters);
    await this.#store.reset(counters, now);
    // Answers from before the reset may have been recorded during the call.
    this.#cache.remove(counters);
  }

  #timeOf(given: number | undefined): number {
    if (given !== undefined) return given;
    const now = Date.now();
    this.#cache.observe(now);
    return now;
  }

  #removeReturned(unused: readonly UnusedQuota[]): void {
    this.#cache.remove(unused.map(({ counter }): Counter => counter));
  }

  /** @param isStoreAway whether the store has failed: see `DenialCache` */
  #denialAt(group: Group, time: number, isStoreAway = false): Answer | undefined {
    const denial = this.#cache.denialOf(group, time, isStoreAway);
    return denial && answerOf(denial, time);
  }
}

function answerOf(denial: Denial, time: number): Answer {
  // The store's clock minus this isolate's, from the first cached counter.
  const now = time + (denial.find(Boolean)?.clockOffsetMs ?? 0);
  const tallies = denial.map(
    (snapshot) => snapshot && { ...tallyOf(snapshot, now), isUncertain: true as const },
  );
  return { now, admitted: false, tallies, fromMemory: true };
}
