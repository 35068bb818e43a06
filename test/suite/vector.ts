// Vectors describe fixed windows as data. Every store must return these numbers.
//
// Times are in milliseconds, counted from a base time. The base time is in the future, and begins a window if the
// counter has no offset. `value` is the quota left, which is the capacity minus the quota used. If a request is
// admitted, the new value is min(value + limit · windows elapsed, capacity) − cost The value is below zero after a
// reservation. It is also below zero if an adjustment has raised the quota used above the capacity.

import type { Ban } from "../../src/config/ban.ts";
import { type Calendar, unitLengthMs } from "../../src/config/calendar.ts";
import { type Counter, type Demand, type Tally, windowAt } from "../../src/engine/counter.ts";
import { quotaAfterMs } from "../../src/engine/fixed-window.ts";
import type { Answer, Store } from "../../src/stores/store.ts";

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
  readonly ban?: Ban;
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

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** One step of a vector, ready to run. */
export interface PreparedStep {
  readonly counter: Demand;
  /** The quota that can be used without a reservation. */
  readonly capacity: number;
  /** The time of the step, in milliseconds since the Unix epoch. */
  readonly now: number;
}

/** The result of a step. A reset has no outcome, and only a decision has a time. */
export interface StepResult {
  readonly outcome?: Outcome;
  readonly decidedAt?: number;
}

/**
 * Returns the vector's base time, which by default is the next start of a window. The default is in
 * the future, because a store may remove the rows of windows that have ended.
 */
export function baseOf({ base, counter }: Vector): number {
  if (base !== undefined) return base;
  const hour = Math.ceil(Date.now() / HOUR) * HOUR;
  return windowAt(hour - 1, { ...windowsOf(counter), offsetMs: 0 }).endsAt;
}

function windowsOf({ windowMs = MINUTE, calendar }: VectorCounter) {
  return calendar ? { windowMs: unitLengthMs(calendar.unit), calendar } : { windowMs };
}

/** @param base the time of the vector's beginning, in milliseconds since the Unix epoch */
export function prepareStep(
  { key, identity }: Pick<Counter, "key" | "identity">,
  vector: Vector,
  step: Step,
  base: number,
): PreparedStep {
  const fields: VectorCounter = { ...vector.counter, ...step };
  const { limit, capacity = limit, offsetMs = 0, zeroAt } = fields;
  const { rollsOver, ban } = fields;
  const { cost = 1, reserve = 0 } = step;
  const counter = {
    key,
    identity,
    limit,
    ...windowsOf(fields),
    offsetMs: zeroAt === undefined ? offsetMs : base + zeroAt,
    cost,
    ceiling: capacity + reserve,
    ...(rollsOver && { rollsOver }),
    ...(ban && { ban }),
  };
  return { counter, capacity, now: base + step.at };
}

export async function runStep(
  store: Store,
  { op = "decide" }: Step,
  { counter, capacity, now }: PreparedStep,
): Promise<StepResult> {
  if (op === "reset") {
    await store.reset([counter], now);
    return {};
  }
  if (op === "adjust") {
    const [tally] = await store.adjust([counter], now);
    return { outcome: outcomeOf(tally as Tally, capacity) };
  }
  const [answer] = (await Promise.all(store.decide([[counter]], now))) as [Answer];
  const [tally] = answer.tallies as [Tally];
  return {
    outcome: decided(answer.admitted, tally, counter, capacity, answer.now),
    decidedAt: answer.now,
  };
}

function decided(
  admitted: boolean,
  tally: Tally,
  counter: Demand,
  capacity: number,
  now: number,
): Outcome {
  const { banMs, count } = tally;
  const outcome = { admitted, ...outcomeOf(tally, capacity) };
  if (!admitted) {
    return { ...outcome, retryMs: Math.max(banMs, quotaAfterMs(counter, tally, capacity, now)) };
  }
  return count > capacity
    ? {
        ...outcome,
        reservationDelayMs: quotaAfterMs({ ...counter, cost: 0 }, tally, capacity, now),
      }
    : outcome;
}

function outcomeOf({ count, resetMs, banMs }: Tally, capacity: number) {
  return { value: capacity - count, resetMs, banMs };
}

/** Returns an outcome in which missing fields have their default values. */
export function complete({ banMs = 0, ...outcome }: Outcome): Outcome & { banMs: number } {
  return outcome.admitted === false
    ? { retryMs: outcome.resetMs, ...outcome, banMs }
    : { ...outcome, banMs };
}
