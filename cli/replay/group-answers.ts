import type { CounterGroups } from "../../src/limiter/counters.ts";
import { type RuleVerdict, verdictsOf } from "../../src/limiter/decision.ts";
import type { Answer } from "../../src/stores/store.ts";

/** The answer for a group, at the time of its request. */
export type GroupAnswer = Pick<Answer, "admitted" | "tallies">;

/** The answer for a group with the mode `mark` after a denial. */
export const SKIPPED: GroupAnswer = { admitted: false, tallies: [] };

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

/**
 * Returns what each rule alone says about an admitted request, of the rules whose cost depends on the
 * response.
 */
export function verdictsOfGroups(
  groups: CounterGroups,
  answers: GroupAnswers,
  now: number,
): RuleVerdict[] {
  const verdicts = answers.enforced
    ? [...verdictsOf(groups.enforced, { ...answers.enforced, now })]
    : [];
  for (const mode of ["shadow", "marks"] as const) {
    for (const [index, group] of groups[mode].entries()) {
      const answer = answers[mode][index];
      if (answer) verdicts.push(...verdictsOf(group, { ...answer, now }));
    }
  }
  return verdicts;
}
