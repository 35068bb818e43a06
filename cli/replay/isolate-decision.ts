import { certainTalliesOf } from "../../src/limiter/blocked.ts";
import { addToGroups, countersOf, emptyGroups, storeGroupsOf } from "../../src/limiter/counters.ts";
import { type Answer, type Store, StoreError } from "../../src/stores/store.ts";
import type { LogRequest } from "../logs/log-request.ts";
import type { AppliedClient } from "./applied-client.ts";
import { answersByMode, type GroupAnswers, verdictsOfGroups } from "./group-answers.ts";
import { responseCountersOf } from "./response-charges.ts";

/** The decision of an isolate on one request. */
export interface IsolateDecision {
  readonly answers: GroupAnswers;
  /** The time of the decision, by the store's clock. */
  readonly now: number;
}

/**
 * Decides a request as the Worker's limiter does, and charges the rules that depend on the response.
 *
 * @param store the store with the isolate's leases and denial cache
 * @returns undefined if the store has not decided in time
 */
export async function decideInIsolate(
  store: Store,
  request: LogRequest,
  applied: readonly AppliedClient[],
  prefix: string,
): Promise<IsolateDecision | undefined> {
  const groups = emptyGroups();
  for (const { ruleCounters } of applied) addToGroups(groups, ruleCounters);
  const tallies = certainTalliesOf(groups.enforced, Date.now());
  const storeGroups = tallies ? groups.shadow.map(countersOf) : storeGroupsOf(groups);
  const all = await Promise.all(store.decide(storeGroups).map(orUndecided));
  if (groups.enforced.length > 0 && !tallies && !all[0]) return undefined;
  const now = all.find(Boolean)?.now ?? Date.now();
  const answers = tallies
    ? { enforced: { admitted: false, tallies }, shadow: all, marks: [] }
    : answersByMode(groups, all);
  if (!answers.enforced || answers.enforced.admitted) {
    const verdicts = verdictsOfGroups(groups, answers, now);
    for (const counters of responseCountersOf(verdicts, request, prefix)) {
      // A charge that fails affects no decision on this request.
      store.adjust(counters).catch(() => {});
    }
  }
  return { answers, now };
}

/** A group that fails is undecided. */
async function orUndecided(answered: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await answered;
  } catch (error) {
    if (error instanceof StoreError) return undefined;
    throw error;
  }
}
