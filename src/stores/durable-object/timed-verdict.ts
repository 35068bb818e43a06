import type { GroupVerdict } from "../../engine/counter.ts";
import type { Answer, Group } from "../store.ts";

/** A group's verdict, and the time at which the object decided. */
export interface TimedVerdict extends GroupVerdict {
  readonly now: number;
  /** Whether caches must ignore a denial, because an open hold may still release quota. */
  readonly skipCache?: boolean;
}

/** The verdict of the method `hold`. If the group is admitted, it contains the hold's id. */
export interface HoldVerdict extends TimedVerdict {
  readonly hold?: string;
}

/** @throws {TypeError} if the object's answer does not have a tally for each counter of the group, or none */
export function answerOf(verdict: TimedVerdict | undefined, group: Group): Answer {
  const { now, admitted, tallies, skipCache } = verdict ?? ({} as Partial<TimedVerdict>);
  const isWhole = tallies?.length === group.length || (!admitted && tallies?.length === 0);
  if (now === undefined || admitted === undefined || !isWhole) throw new TypeError("not a verdict");
  if (!skipCache) return { now, admitted, tallies };
  return { now, admitted, tallies: tallies.map((tally) => ({ ...tally, isUncertain: true })) };
}
