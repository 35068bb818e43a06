import type { GroupVerdict } from "../../engine/counter.ts";
import type { Answer } from "../store.ts";

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

export function answerOf({ now, admitted, tallies, skipCache }: TimedVerdict): Answer {
  if (!skipCache) return { now, admitted, tallies };
  return { now, admitted, tallies: tallies.map((tally) => ({ ...tally, isUncertain: true })) };
}
