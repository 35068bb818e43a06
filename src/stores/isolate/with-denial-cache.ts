import type { Counter, UnusedQuota } from "../../engine/counter.ts";
import {
  decidedLater,
  decisiveRole,
  failedGroup,
  isDependent,
  isEnforced,
  roleOf,
  SKIPPED,
  skipDependents,
} from "../group-roles.ts";
import type { GroupAnswer, Store, Verdict } from "../store.ts";
import { type Denial, DenialCache } from "./denial-cache.ts";
import { type StoreCall, tallyOf } from "./snapshot.ts";

/** The maximum number of cached counters. That many counters take less than 2 MB. */
const MAX_COUNTERS = 4096;

type Group = readonly Counter[];

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
    adjust: (counters, now) => cachingStore.adjust(counters, now),
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

  async decide(
    groups: readonly Group[],
    now?: number,
    unused: readonly UnusedQuota[] = [],
  ): Promise<Verdict> {
    const time = this.#timeOf(now);
    const denials = groups.map((group) => this.#cache.denialOf(group, time));
    const isDenied = groups.some((group, index) => denials[index] && isEnforced(group));
    const isOpen = (group: Group, index: number) =>
      !denials[index] && !(isDenied && isDependent(group));
    const openGroups = groups.filter(isOpen);
    const storeNow = time + clockOffsetOf(denials);
    let verdict: Verdict;
    if (openGroups.length === 0 && unused.length === 0) {
      verdict = { now: storeNow, groups: [] };
    } else if (
      openGroups.length > 0 &&
      openGroups.length < groups.length &&
      !openGroups.some(isEnforced)
    ) {
      // Some groups are decided from memory. They neither wait for the other groups nor fail with
      // them.
      const call = this.#callStore(openGroups, now, unused);
      verdict = { now: storeNow, groups: decidedLater(call, openGroups.length) };
    } else {
      verdict = await this.#callStore(openGroups, now, unused);
    }
    const answers = verdict.groups.values();
    const allAnswers = groups.map((group, index): GroupAnswer => {
      if (isOpen(group, index)) return answers.next().value as GroupAnswer;
      const denial = denials[index];
      return denial ? answerOf(denial, verdict.now) : SKIPPED;
    });
    const role = decisiveRole(groups);
    const fromMemory =
      openGroups.length === 0
        ? unused.length === 0
        : !openGroups.some((group) => roleOf(group) === role);
    return { now: verdict.now, groups: skipDependents(groups, allAnswers), fromMemory };
  }

  denialOf(group: Group, now?: number): Verdict | undefined {
    const time = this.#timeOf(now);
    const denial = this.#cache.denialOf(group, time);
    if (!denial) return undefined;
    const storeNow = time + clockOffsetOf([denial]);
    return { now: storeNow, groups: [answerOf(denial, storeNow)], fromMemory: true };
  }

  async adjust(counters: readonly Counter[], now?: number) {
    const tallies = await this.#store.adjust(counters, now);
    this.#cache.remove(counters);
    return tallies;
  }

  async reset(counters: readonly Counter[], now?: number): Promise<void> {
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

  /** Calls the store for groups and records its answers. */
  async #callStore(
    groups: readonly Group[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
  ): Promise<Verdict> {
    // With the returned quota, the next request may be admitted, so it must not be denied from
    // memory.
    this.#cache.remove(unused.map(({ counter }) => counter));
    const sentAt = Date.now();
    try {
      const verdict = await this.#store.decide(groups, now, unused);
      this.#recordVerdict(groups, verdict, now, sentAt);
      return verdict;
    } catch (error) {
      return this.#verdictWithoutStore(groups, this.#timeOf(now), error);
    }
  }

  #recordVerdict(
    groups: readonly Group[],
    verdict: Verdict,
    now: number | undefined,
    sentAt: number,
  ): void {
    const isGiven = now !== undefined;
    const callAt = (decidedAt: number): StoreCall => {
      return { sentAt, answeredAt: this.#timeOf(undefined), decidedAt, isGiven };
    };
    const call = callAt(verdict.now);
    for (const [index, group] of groups.entries()) {
      const answer = verdict.groups[index] as GroupAnswer;
      if (!answer.later) this.#cache.record(group, answer, call);
      else {
        answer.later.then(
          (late) => this.#cache.record(group, late.groups[0] as GroupAnswer, callAt(late.now)),
          () => {},
        );
      }
    }
  }

  /**
   * Denies from memory when the store has failed.
   *
   * @throws the store's error, if an enforced group is not certainly denied
   */
  #verdictWithoutStore(groups: readonly Group[], time: number, error: unknown): Verdict {
    const denials = groups.map((group) => this.#cache.denialOf(group, time, true));
    const isUndecided = groups.some((group, index) => !denials[index] && isEnforced(group));
    if (isUndecided || !denials.some(Boolean)) throw error;
    const storeNow = time + clockOffsetOf(denials);
    const answers = denials.map((denial) =>
      denial ? answerOf(denial, storeNow) : failedGroup(error),
    );
    return { now: storeNow, groups: skipDependents(groups, answers) };
  }
}

/** The store's clock minus this isolate's, in milliseconds, from the first cached counter. */
function clockOffsetOf(denials: readonly (Denial | undefined)[]): number {
  for (const denial of denials) {
    for (const snapshot of denial ?? []) if (snapshot) return snapshot.clockOffsetMs;
  }
  return 0;
}

function answerOf(denial: Denial, storeNow: number): GroupAnswer {
  const tallies = denial.map((snapshot) => snapshot && tallyOf(snapshot, storeNow));
  return { admitted: false, skipCache: true, tallies };
}
