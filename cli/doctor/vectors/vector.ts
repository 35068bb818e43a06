// Vectors describe fixed windows as data. Every store must return these numbers.
//
// Times are in milliseconds, counted from a base time. The base time is in the future. It is the
// start of a window if the counter has no offset. `value` is the quota left, which is the capacity minus the quota used. If
// a request is admitted, the new value is
//   min(value + limit · windows elapsed, capacity) − cost
// The value is below zero after a reservation. It is also below zero if an adjustment has raised
// the quota used above the capacity.

import type { Calendar } from "../../../src/config/calendar.ts";
import type { Counter } from "../../../src/engine/counter.ts";

/** A counter, with the fields that the limits of a rule have. */
export interface VectorCounter {
  readonly limit: number;
  /** How much quota the counter has without a reservation. @default limit */
  readonly capacity?: number;
  /** @default 60000, a minute */
  readonly windowMs?: number;
  /** The calendar of the windows. If it is set, `windowMs` has no effect. */
  readonly calendar?: Calendar | undefined;
  /**
   * Shifts the start of each window by this number of milliseconds.
   */
  readonly offsetMs?: number;
  /**
   * The start of window number 0, as a time after the base. Earlier windows have negative numbers.
   */
  readonly zeroAt?: number;
  readonly rollsOver?: boolean;
  readonly banMs?: number;
  readonly escalation?: Counter["escalation"] | undefined;
}

/** The result of a decision or an adjustment. */
export interface Outcome {
  /** Undefined for adjustments. */
  readonly admitted?: boolean;
  readonly value: number;
  readonly resetMs: number;
  /** The time until a request with the denied cost may be admitted. @default resetMs */
  readonly retryMs?: number;
  /** The time until later windows have repaid a reservation. @default no reservation */
  readonly reservationDelayMs?: number;
  /** The time until the ban ends. @default 0, no ban */
  readonly banMs?: number;
}

/**
 * One operation on the counter. If a step has fields of a counter, they replace the counter's
 * fields for this step, as if the rule had changed.
 */
export interface Step extends Partial<VectorCounter> {
  readonly at: number;
  /** A reset has no outcome. @default "decide" */
  readonly op?: "decide" | "adjust" | "reset";
  /** @default 1 */
  readonly cost?: number;
  /**
   * The quota that this request may reserve. So the quota left (`value`) may fall to −`reserve`.
   *
   * @default 0
   */
  readonly reserve?: number;
  readonly expect?: Outcome;
}

export interface Vector {
  readonly name: string;
  readonly counter: VectorCounter;
  readonly steps: readonly Step[];
  /**
   * The base time, in milliseconds since the Unix epoch. Vectors with windows of different lengths
   * need it.
   *
   * @default the next start of a window
   */
  readonly base?: number;
  /**
   * Whether a ban ends in this vector. A store whose keys expire by its own clock skips these
   * vectors.
   */
  readonly endsBan?: true;
}

export const yes = (value: number, resetMs: number, rest?: Partial<Outcome>): Outcome => ({
  admitted: true,
  value,
  resetMs,
  ...rest,
});

export const no = (value: number, resetMs: number, rest?: Partial<Outcome>): Outcome => ({
  admitted: false,
  value,
  resetMs,
  ...rest,
});
