import type { Counter, Tally, UnusedQuota } from "../../engine/counter.ts";
import type { Store, Verdict } from "../store.ts";
import { availableQuota } from "./lease.ts";
import { LeaseBook } from "./lease-book.ts";
import { type LeaseCallOptions, LeaseCalls } from "./lease-calls.ts";
import { LeaseDecider } from "./lease-decider.ts";
import {
  ADMITTED_FROM_LEASES,
  answerOf,
  type CounterPlan,
  clockOffsetOf,
  type GroupPlan,
  isCoveredByNow,
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
  readonly #book: LeaseBook;
  readonly #calls: LeaseCalls;
  readonly #decider: LeaseDecider;

  constructor(store: Store, options: LeaseOptions) {
    this.#store = store;
    this.#book = new LeaseBook(options.maxLeases ?? MAX_LEASES);
    this.#calls = new LeaseCalls(store, this.#book, options);
    this.#decider = new LeaseDecider(options, this.#book, this.#calls, (given) =>
      this.#timeOf(given),
    );
  }

  async decide(
    groups: readonly (readonly Counter[])[],
    now?: number,
    unused: readonly UnusedQuota[] = [],
  ): Promise<Verdict> {
    const fromLeases = unused.length === 0 ? this.#admitFromLeases(groups, now) : undefined;
    if (fromLeases) return fromLeases;
    const startedAt = Date.now();
    const decided = await this.#decider.decide(groups, now, unused);
    const { storeNow, results } = decided;
    let { fromMemory } = decided;
    if (results.some((result) => isCoveredByNow(result, now ?? Date.now()))) {
      const retriedFromMemory = await this.#decider.retryCovered(results, now, startedAt);
      fromMemory = fromMemory && retriedFromMemory;
    }
    const time = now ?? Date.now();
    for (const { plans, answer } of results) {
      if (answer.admitted) this.#calls.refill(plans, now, time);
    }
    const answers = results.map((result) => answerOf(result, storeNow));
    return { now: storeNow, groups: answers, fromMemory };
  }

  /** The store's counts contain the quota that this isolate has leased and not used. */
  denialOf(group: readonly Counter[], now?: number): Verdict | undefined {
    const time = this.#timeOf(now);
    const plans: CounterPlan[] = [];
    for (const counter of group) {
      const quota = this.#book.quotaOf(counter, time);
      const lease = this.#book.peek(counter);
      // Only `decide` can return quota that was leased under another tier.
      if (quota > 0 && !lease) return undefined;
      const plan = { counter, lease };
      if (quota === 0) plans.push({ ...plan, request: counter });
      else if (quota >= counter.cost) plans.push(plan);
      else plans.push({ ...plan, request: { ...counter, cost: counter.cost - quota } });
    }
    const requests = plans.flatMap(({ request }) => request ?? []);
    const verdict = requests.length > 0 ? this.#store.denialOf?.(requests, now) : undefined;
    const answer = verdict?.groups[0];
    if (!verdict || !answer) return undefined;
    return { ...verdict, groups: [answerOf({ plans, answer }, verdict.now)] };
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
    const removed = counters.filter((counter) => !counter.keepsCount);
    this.#book.discard(removed);
    await this.#store.reset(counters, now);
    // Blocks charged before the reset may have arrived during the call.
    this.#book.discard(removed);
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

  /** Admits all groups from memory if possible. Nearly all requests of busy clients take this path. */
  #admitFromLeases(
    groups: readonly (readonly Counter[])[],
    now: number | undefined,
  ): Verdict | undefined {
    const time = this.#timeOf(now);
    const groupPlans: GroupPlan[] = [];
    for (const group of groups) {
      const plans: CounterPlan[] = [];
      for (const counter of group) {
        const lease = counter.checkOnly ? undefined : this.#book.peek(counter);
        if (!lease || counter.cost === 0 || availableQuota(lease, time) < counter.cost) {
          return undefined;
        }
        plans.push({ counter, lease });
      }
      groupPlans.push(plans);
    }
    if (groupPlans.length === 0) return undefined;
    const storeNow = time + clockOffsetOf(groupPlans[0]);
    for (const counter of groups.flat()) {
      const lease = this.#book.findOrOpen(counter, time);
      if (lease) lease.quota -= counter.cost;
    }
    this.#calls.refill(groupPlans.flat(), now, time);
    const answers = groupPlans.map((plans) =>
      answerOf({ plans, answer: ADMITTED_FROM_LEASES }, storeNow),
    );
    return { now: storeNow, groups: answers, fromMemory: true };
  }
}
