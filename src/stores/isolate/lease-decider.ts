import type { Counter, UnusedQuota } from "../../engine/counter.ts";
import { decidedLater, failedGroup, isDependent, skipDependents } from "../group-roles.ts";
import type { GroupAnswer, Verdict } from "../store.ts";
import type { LeaseBook } from "./lease-book.ts";
import type { LeaseCallOptions, LeaseCalls } from "./lease-calls.ts";
import {
  ADMITTED_FROM_LEASES,
  areDecisiveCovered,
  type CounterPlan,
  clockOffsetOf,
  type GroupPlan,
  type GroupResult,
  isCoveredByNow,
  isEnforcedPlan,
  needsStore,
  planCounter,
} from "./lease-plan.ts";

type Group = readonly Counter[];

/** Decides groups that leases do not cover completely, with calls to the store. */
export class LeaseDecider {
  readonly #options: LeaseCallOptions;
  readonly #book: LeaseBook;
  readonly #calls: LeaseCalls;
  readonly #timeOf: (given: number | undefined) => number;

  /**
   * @param timeOf returns the time of a decision; its argument is the time that the caller passed
   */
  constructor(
    options: LeaseCallOptions,
    book: LeaseBook,
    calls: LeaseCalls,
    timeOf: (given: number | undefined) => number,
  ) {
    this.#options = options;
    this.#book = book;
    this.#calls = calls;
    this.#timeOf = timeOf;
  }

  /**
   * Decides groups with at most one call to the store, which contains only the counters that leases
   * do not cover.
   */
  async decide(
    groups: readonly Group[],
    now: number | undefined,
    unused: readonly UnusedQuota[],
    timeLeftMs?: number,
  ): Promise<{ storeNow: number; results: GroupResult[]; fromMemory: boolean }> {
    const time = this.#timeOf(now);
    const groupPlans = groups.map((group) => group.map((counter) => this.#plan(counter, time)));
    const openGroups = groupPlans.filter(needsStore);
    let verdict: Verdict = { now: time + clockOffsetOf(groupPlans[0]), groups: [] };
    let fromMemory = true;
    if (openGroups.length > 0 || unused.length > 0) {
      const returns = [...unused, ...this.#book.takeReturns(time)];
      const call = this.#calls.decide(openGroups, now, returns, timeLeftMs);
      const isOnlyOptional = openGroups.length > 0 && areDecisiveCovered(groups, groupPlans);
      const isAwaited = groups.some(
        (group, index) => isDependent(group) && needsStore(groupPlans[index] as GroupPlan),
      );
      if (isOnlyOptional && !isAwaited) {
        this.#options.background(call.catch(() => {}));
        verdict = { now: verdict.now, groups: decidedLater(call, openGroups.length) };
      } else {
        try {
          verdict = await call;
          fromMemory = isOnlyOptional || verdict.fromMemory === true;
        } catch (error) {
          // Leases have admitted the enforced group, so the failure concerns the other groups only.
          if (isOnlyOptional) {
            verdict = { now: verdict.now, groups: openGroups.map(() => failedGroup(error)) };
          } else {
            this.#putBack(groupPlans.flat());
            throw error;
          }
        }
      }
    }
    const storeAnswers = verdict.groups.values();
    const answers = groupPlans.map((plans) =>
      needsStore(plans) ? (storeAnswers.next().value as GroupAnswer) : ADMITTED_FROM_LEASES,
    );
    const results = skipDependents(groups, answers).map((answer, index) =>
      this.#resultOf(groupPlans[index] as GroupPlan, answer),
    );
    return { storeNow: verdict.now, results, fromMemory };
  }

  /**
   * Decides denied groups again if leases cover them by now, and replaces their results. If the
   * enforced group is decided again, the dependent groups that were skipped are decided too.
   *
   * The quota for these groups arrived during the call, in a block for which another request had
   * asked the store. Without this step, only 49 of 200 simultaneous requests pass a limit of 50
   * (test/node/http/limits.test.ts).
   *
   * @returns whether this step took no call to the store
   */
  async retryCovered(
    results: GroupResult[],
    now: number | undefined,
    startedAt: number,
  ): Promise<boolean> {
    const timeLeftMs = this.#options.timeoutMs - (Date.now() - startedAt);
    if (timeLeftMs <= 0) return true;
    const isCovered = (result: GroupResult) => isCoveredByNow(result, now ?? Date.now());
    const retriesEnforced = results.some(
      (result) => isEnforcedPlan(result.plans) && isCovered(result),
    );
    const retried = results.filter(
      (result) => isCovered(result) || (retriesEnforced && result.answer.isSkipped),
    );
    const groups = retried.map(({ plans }) => plans.map(({ counter }) => counter));
    // If the second call fails, the groups stay denied.
    const second = await this.decide(groups, now, [], timeLeftMs).catch(() => undefined);
    for (const [index, result] of retried.entries()) {
      results[results.indexOf(result)] = second?.results[index] ?? result;
    }
    return second?.fromMemory ?? false;
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
   * Returns the result for a group. If the answer is a denial, or if `later` becomes one, the quota
   * that was taken from leases goes back to them.
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
