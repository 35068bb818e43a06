import type { Answer } from "../../src/stores/store.ts";

/** The answers for all groups of a call. */
export interface Verdict {
  /** When the first group was decided. */
  readonly now: number;
  readonly groups: readonly Answer[];
  /** Whether no group took a call. */
  readonly fromMemory: boolean;
}

/** Waits for the answers for all groups of a call. Rejects with the failure of the first group that fails. */
export async function verdictOf(answers: readonly Promise<Answer>[]): Promise<Verdict> {
  const groups = await Promise.all(answers);
  const fromMemory = groups.every((answer) => answer.fromMemory);
  return { now: groups[0]?.now ?? Date.now(), groups, fromMemory };
}

/** Returns the answers of a verdict or of its promise. Each answer has its own promise. */
export function answersFrom(
  groups: readonly unknown[],
  verdict: Given | Promise<Given>,
): Promise<Answer>[] {
  return groups.map(async (_, index) => {
    const { now, groups: given } = await verdict;
    return { now, ...given[index] } as Answer;
  });
}

interface Given {
  readonly now: number;
  readonly groups: readonly (Omit<Answer, "now"> & { readonly now?: number })[];
}
