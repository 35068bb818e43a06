import type { Counter } from "../engine/counter.ts";
import type { GroupAnswer, Verdict } from "./store.ts";

// A call decides groups with three roles. The enforced group decides whether the request passes. A
// dependent group (mode "mark") decides whether a request that passes is marked. A shadow group
// decides nothing. A group with a weaker role must not change the verdict on a group with a
// stronger role.

type Group = readonly Counter[];

export type GroupRole = "enforced" | "dependent" | "shadow";

export function roleOf(group: Group | undefined): GroupRole {
  const first = group?.[0];
  if (first?.shadow) return "shadow";
  return first?.dependent ? "dependent" : "enforced";
}

/** Whether a group belongs to a rule in shadow mode. */
export function isShadow(group: Group): boolean {
  return roleOf(group) === "shadow";
}

/** Whether a group is charged only if the enforced groups of its call are admitted. */
export function isDependent(group: Group): boolean {
  return roleOf(group) === "dependent";
}

export function isEnforced(group: Group): boolean {
  return roleOf(group) === "enforced";
}

/** The strongest role in a call. If the groups with this role fail, the whole call fails. */
export function decisiveRole(groups: readonly Group[]): GroupRole {
  if (groups.length === 0 || groups.some(isEnforced)) return "enforced";
  return groups.some(isDependent) ? "dependent" : "shadow";
}

/** The answer for a dependent group of a call in which an enforced group was denied. */
export const SKIPPED = { admitted: false, isSkipped: true, skipCache: true, tallies: [] } as const;

/** Replaces the answers for dependent groups if an enforced group was denied. */
export function skipDependents(
  groups: readonly Group[],
  answers: readonly GroupAnswer[],
): readonly GroupAnswer[] {
  const isDenied = (group: Group, index: number) => isEnforced(group) && !answers[index]?.admitted;
  if (!groups.some(isDependent) || !groups.some(isDenied)) return answers;
  return answers.map((answer, index) => (isDependent(groups[index] as Group) ? SKIPPED : answer));
}

/** Returns the answer for a shadow or dependent group that could not be decided. */
export function failedGroup(error: unknown): GroupAnswer {
  return decidedLater(Promise.reject(error), 1)[0] as GroupAnswer;
}

/**
 * Returns the answers for groups that a separate call decides. Enforced groups do not wait for this
 * call.
 *
 * @param groups the number of groups in the call
 */
export function decidedLater(call: Promise<Verdict>, groups: number): GroupAnswer[] {
  return Array.from({ length: groups }, (_, index): GroupAnswer => {
    const later = call.then((verdict): Verdict | Promise<Verdict> => {
      const answer = verdict.groups[index] as GroupAnswer;
      return answer.later ?? { now: verdict.now, groups: [answer] };
    });
    // The caller may ignore `later`, and then nothing would handle a rejection.
    later.catch(() => {});
    return { admitted: false, tallies: [], later };
  });
}
