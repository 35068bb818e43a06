import { unitLengthMs } from "../../../src/config/calendar.ts";
import { type Counter, type Demand, type Tally, windowAt } from "../../../src/engine/counter.ts";
import { quotaAfterMs } from "../../../src/engine/fixed-window.ts";
import type { Answer, Store } from "../../../src/stores/store.ts";
import type { Outcome, Step, Vector, VectorCounter } from "./vector.ts";

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
  const { rollsOver, banMs, escalation } = fields;
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
    ...(banMs && { banMs }),
    ...(escalation && { escalation }),
  };
  return { counter, capacity, now: base + step.at };
}

/** Runs a step on a store. */
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
