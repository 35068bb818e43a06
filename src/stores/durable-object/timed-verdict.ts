import type { GroupVerdict } from "../../engine/counter.ts";

/** A group's verdict, and the time at which the object decided. */
export interface TimedVerdict extends GroupVerdict {
  readonly now: number;
  /** Whether caches must ignore a denial, because an open hold may still release quota. */
  readonly skipCache?: boolean;
  /** Whether a dependent group was not decided, because an enforced group was denied. */
  readonly isSkipped?: boolean;
}

/** The verdict of the method `hold`. If the group is admitted, it contains the hold's id. */
export interface HoldVerdict extends TimedVerdict {
  readonly hold?: string;
}
