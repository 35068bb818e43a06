import { certainTalliesOf } from "../../src/limiter/certain-denial.ts";
import { addToGroups, emptyGroups, storeGroupsOf } from "../../src/limiter/counter-groups.ts";
import { countersOf } from "../../src/limiter/counters.ts";
import type { GroupAnswer, Store, Verdict } from "../../src/stores/store.ts";
import { StoreError } from "../../src/stores/store-error.ts";
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
  let verdict: Verdict = { now: Date.now(), groups: [] };
  try {
    if (storeGroups.length > 0) verdict = await store.decide(storeGroups);
  } catch (error) {
    if (error instanceof StoreError) return undefined;
    throw error;
  }
  const all = await settled(verdict.groups);
  const answers = tallies
    ? { enforced: { admitted: false, tallies }, shadow: all, marks: [] }
    : answersByMode(groups, all);
  if (!answers.enforced || answers.enforced.admitted) {
    const verdicts = verdictsOfGroups(groups, answers, verdict.now);
    for (const counters of responseCountersOf(verdicts, request, prefix)) {
      // A charge that fails affects no decision on this request.
      store.adjust(counters).catch(() => {});
    }
  }
  return { answers, now: verdict.now };
}

/** Waits for the groups that the store decides separately. A group that fails is undecided. */
async function settled(
  answers: readonly GroupAnswer[],
): Promise<readonly (GroupAnswer | undefined)[]> {
  if (!answers.some(({ later }) => later)) return answers;
  return Promise.all(
    answers.map(async (answer) => {
      if (!answer.later) return answer;
      const verdict = await answer.later.catch(() => undefined);
      return verdict?.groups[0];
    }),
  );
}
