import type { Counter, Tally, UnusedQuota } from "../../engine/counter.ts";
import { decidedLater } from "../shadow-groups.ts";
import type { GroupAnswer, Store, Verdict } from "../store.ts";
import { availableQuota } from "./lease.ts";
import { LeaseBook } from "./lease-book.ts";
import { type LeaseCallOptions, LeaseCalls } from "./lease-calls.ts";
import {
  ADMITTED_FROM_LEASES,
  answerOf,
  type CounterPlan,
  clockOffsetOf,
  type GroupPlan,
  type GroupResult,
  isCoveredByNow,
  isOnlyShadowOpen,
  needsStore,
  planCounter,
} from "./lease-plan.ts";

/** The maximum number of leases. That many leases take about 2 MB. */
const MAX_LEASES = 4096;

export interface LeaseOptions extends LeaseCallOptions {
  /** @default 4096 */
  readonly maxLeases?: number;
}

/** A store that decides from leases if possible: see with-leases.ts. */
export class LeaseStore implements Store {
  readonly #store: Store;
  readonly #options: LeaseOptions;
  readonly #book: LeaseBook;
  readonly #calls: LeaseCalls;

  constructor(store: Store, options: LeaseOptions) {
    this.#store = store;
    this.#options = options;
    this.#book = new LeaseBook(options.maxLeases ?? MAX_LEASES);
    this.#calls = new LeaseCalls(store, this.#book, options);
  }

  async decide(
    groups: readonly (readonly Counter[])[],
    now?: number,
    unused: readonly UnusedQuota[] = [],
  ): Promise<Verdict> {
    const group = groups.length === 1 && unused.length === 0 ? groups[0] : undefined;
    const fromLeases = group && this.#admitFromLeases(group, now);
    if (fromLeases) return fromLeases;
    const startedAt = Date.now();
    const { storeNow, results } = await this.#decideGroups(groups, now, unused);
    if (results.some((result) => isCoveredByNow(result, now ?? Date.now()))) {
      await this.#retryCovered(results, now, startedAt);
    }
    const time = now ?? Date.now();
    for (const { plans, answer } of results) {
      if (answer.admitted) this.#calls.refill(plans, now, time);
    }
    return { now: storeNow, groups: results.map((result) => answerOf(result, storeNow)) };
  }

  async adjust(counters: readonly Counter[], now?: number): Promise<readonly Tally[]> {
    const tallies = await this.#calls.adjust(counters, now);
    // A block may have arrived during the calls. Callers must see counts without its unspent quota.
    const time = this.#timeOf(now);
    return tallies.map((tally, index) => {
      const lease = this.#book.peek(counters[index] as Counter);
      const unspent = lease ? availableQuota(lease, time) : 0;
      return unspent > 0 ? { ...tally, count: Math.max(0, tally.count - unspent) } : tally;
    });
  }

  async reset(counters: readonly Counter[], now?: number): Promise<void> {
    this.#book.discard(counters);
    await this.#store.reset(counters, now);
    // Blocks charged before the reset may have arrived during the call.
    this.#book.discard(counters);
  }

  /**
   * Returns the time of a decision: the time that the caller passed, or else the time of this
   * isolate's clock. The book checks whether this clock has gone back.
   */
  #timeOf(given: number | undefined): number {
    if (given !== undefined) return given;
    const now = Date.now();
    this.#book.observe(now);
    return now;
  }

  /** Admits a group from memory if possible. Nearly all requests of busy clients take this path. */
  #admitFromLeases(group: readonly Counter[], now: number | undefined): Verdict | undefined {
    const time = this.#timeOf(now);
    const plans: CounterPlan[] = [];
    for (const counter of group) {
      const lease = counter.checkOnly ? undefined : this.#book.peek(counter);
      if (!lease || counter.cost === 0 || availableQuota(lease, time) < counter.cost) {
        return undefined;
      }
      plans.push({ counter, lease });
    }
    const storeNow = time + clockOffsetOf(plans);
    for (const counter of group) {
      const lease = this.#book.findOrOpen(counter, time);
      if (lease) lease.quota -= counter.cost;
    }
    this.#calls.refill(plans, now, time);
    const result = { plans, answer: ADMITTED_FROM_LEASES };
    return { now: storeNow, groups: [answerOf(result, storeNow)] };
  }

  /**
   * Decides groups with at most one call to the store, which contains only the counters that leases
   * do not cover.
   */
  async #decideGroups(
    groups: readonly (readonly Counter[])[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
    timeLeftMs?: number,
  ): Promise<{ storeNow: number; results: GroupResult[] }> {
    const time = this.#timeOf(now);
    const groupPlans = groups.map((group) => group.map((counter) => this.#plan(counter, time)));
    const openGroups = groupPlans.filter(needsStore);
    let verdict: Verdict = { now: time + clockOffsetOf(groupPlans[0]), groups: [] };
    if (openGroups.length > 0 || unused.length > 0) {
      const returns = [...unused, ...this.#book.takeReturns(time)];
      const call = this.#calls.decide(openGroups, now, returns, timeLeftMs);
      if (openGroups.length > 0 && isOnlyShadowOpen(groupPlans)) {
        this.#options.background(call.catch(() => {}));
        verdict = { now: verdict.now, groups: decidedLater(call, openGroups.length) };
      } else {
        try {
          verdict = await call;
        } catch (error) {
          this.#putBack(groupPlans.flat());
          throw error;
        }
      }
    }
    const answers = verdict.groups.values();
    const results = groupPlans.map((plans) => {
      const answer = needsStore(plans) ? (answers.next().value as GroupAnswer) : undefined;
      return this.#resultOf(plans, answer ?? ADMITTED_FROM_LEASES);
    });
    return { storeNow: verdict.now, results };
  }

  /**
   * Decides denied groups again if leases cover them by now, and replaces their results.
   *
   * The quota of these groups has arrived during the call, in a block that a different request had
   * requested. Without this step, only 49 of 200 simultaneous requests pass a limit of 50
   * (test/node/http/limits.test.ts).
   */
  async #retryCovered(
    results: GroupResult[],
    now: number | undefined,
    startedAt: number,
  ): Promise<void> {
    const timeLeftMs = this.#options.timeoutMs - (Date.now() - startedAt);
    if (timeLeftMs <= 0) return;
    const covered = results.filter((result) => isCoveredByNow(result, now ?? Date.now()));
    const groups = covered.map(({ plans }) => plans.map(({ counter }) => counter));
    // If the second call fails, the groups stay denied.
    const second = await this.#decideGroups(groups, now, [], timeLeftMs).catch(() => undefined);
    for (const [index, result] of covered.entries()) {
      results[results.indexOf(result)] = second?.results[index] ?? result;
    }
  }

  /** Plans a counter, and requests a block for its lease if a block is due. */
  #plan(counter: Counter, now: number): CounterPlan {
    const lease = this.#book.findOrOpen(counter, now);
    const plan = planCounter(counter, lease, now);
    const { request } = plan;
    if (!lease || !request || counter.cost === 0 || counter.checkOnly) return plan;
    return { ...plan, request: this.#calls.requestBlock(lease, request, now) ?? request };
  }

  /**
   * The result for a group. If the group is denied, now or later, its leases get the taken quota
   * back.
   */
  #resultOf(plans: GroupPlan, answer: GroupAnswer): GroupResult {
    if (answer.later) {
      const undo = () => this.#putBack(plans);
      answer.later.then(({ groups: [late] }) => late?.admitted || undo(), undo);
    } else if (!answer.admitted) {
      this.#putBack(plans);
    }
    return { plans, answer };
  }

  #putBack(plans: GroupPlan): void {
    for (const { counter, lease, takenQuota } of plans) {
      if (lease && takenQuota) this.#book.putBack(lease, counter, takenQuota);
    }
  }
}
