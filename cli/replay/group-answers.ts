import type { CounterGroups } from "../../src/limiter/counter-groups.ts";
import { recordReserves } from "../../src/limiter/reserves.ts";
import type { GroupAnswer } from "../../src/stores/store.ts";

/** The answers for the groups of one request. */
export interface GroupAnswers {
  /** Undefined if no enforced rule applies. */
  readonly enforced: GroupAnswer | undefined;
  /** One answer for each rule in shadow mode; undefined if the rule is undecided. */
  readonly shadow: readonly (GroupAnswer | undefined)[];
  /**
   * One answer for each rule with the mode `mark`; undefined if the rule is undecided. Empty after a denial
   * that needed no call.
   */
  readonly marks: readonly (GroupAnswer | undefined)[];
}

/** @param answers the answers for the groups in the order of `storeGroupsOf` */
export function answersByMode(
  { enforced, shadow, marks }: CounterGroups,
  answers: readonly (GroupAnswer | undefined)[],
): GroupAnswers {
  const shadowFrom = enforced.length > 0 ? 1 : 0;
  const marksFrom = shadowFrom + shadow.length;
  return {
    enforced: enforced.length > 0 ? answers[0] : undefined,
    shadow: answers.slice(shadowFrom, marksFrom),
    marks: answers.slice(marksFrom, marksFrom + marks.length),
  };
}

/** Stores what a decision has charged before the response: see `recordReserves`. */
export function recordAllReserves(groups: CounterGroups, answers: GroupAnswers, now: number): void {
  if (answers.enforced) recordReserves(groups.enforced, answers.enforced, now);
  for (const mode of ["shadow", "marks"] as const) {
    for (const [index, group] of groups[mode].entries()) {
      const answer = answers[mode][index];
      if (answer) recordReserves(group, answer, now);
    }
  }
}
