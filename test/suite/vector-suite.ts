import { describe, expect, it } from "vitest";
import type { Counter, GroupVerdict, Tally } from "../../src/engine/counter.ts";
import { quotaAfterMs } from "../../src/engine/fixed-window.ts";
import type { Store } from "../../src/stores/store.ts";
import { counter } from "./counters.ts";
import type { ExpiryOptions } from "./driver.ts";
import { type Outcome, type Step, VECTORS, type Vector, type VectorCounter } from "./vectors.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The maximum real time that may pass in a test after a ban begins, in milliseconds. */
const PATIENCE_MS = 10_000;

/**
 * Compares a store's answers with the numbers in vectors.ts. If keys expire by the store's clock,
 * bans end by that clock too. For such a store, the suite skips the vectors in which a ban ends,
 * and tests the end of a ban in real time.
 */
export function vectorSuite(
  createStore: () => Store,
  { expiresByStoreClock }: ExpiryOptions,
): void {
  describe("vectors", () => {
    const store = createStore();
    const vectors = VECTORS.filter(({ endsBan }) => !(endsBan && expiresByStoreClock));

    it.each(vectors)("$name", async (vector) => {
      const base = baseOf(vector);
      const key = counter();
      for (const [index, step] of vector.steps.entries()) {
        const now = base + step.at;
        const [requested, capacity] = counterOf(key, { ...vector.counter, ...step }, step, base);
        const outcome = await run(store, step, requested, capacity, now);
        if (expiresByStoreClock && step.expect?.banMs) {
          expectBan(outcome, step.expect, `step ${index}`);
        } else {
          expect(outcome, `step ${index}`).toEqual(step.expect && complete(step.expect));
        }
      }
    });

    if (expiresByStoreClock)
      it("a ban ends by the clock of the store", async () => {
        const banned = counter({ limit: 1, banMs: 100 });
        const admittedAt = async (now: number) =>
          (await store.decide([[banned]], now)).groups[0]?.admitted;
        const now = Math.ceil(Date.now() / HOUR) * HOUR;
        expect(await admittedAt(now)).toBe(true);
        const before = Date.now();
        expect(await admittedAt(now)).toBe(false);
        // In the next window there is quota again, so only the ban denies.
        const polling = { interval: 5, timeout: PATIENCE_MS };
        await expect.poll(() => admittedAt(now + MINUTE), polling).toBe(true);
        expect(Date.now() - before).toBeGreaterThanOrEqual(100);
      });
  });
}

/**
 * Returns the next start of a window. It is in the future, because a store may remove rows of the
 * past.
 */
function baseOf({ counter: { windowMs = MINUTE } }: Vector): number {
  const hour = Math.ceil(Date.now() / HOUR) * HOUR;
  return Math.ceil(hour / windowMs) * windowMs;
}

function counterOf(
  { key, identity }: Counter,
  { limit, capacity = limit, ...rule }: VectorCounter,
  { cost = 1, reserve = 0 }: Step,
  base: number,
): [Counter, capacity: number] {
  const { windowMs = MINUTE, offsetMs = 0, zeroAt, rollsOver, banMs } = rule;
  const requested = {
    key,
    identity,
    limit,
    windowMs,
    offsetMs: zeroAt === undefined ? offsetMs : base + zeroAt,
    cost,
    ceiling: capacity + reserve,
    ...(rollsOver && { rollsOver }),
    ...(banMs && { banMs }),
  };
  return [requested, capacity];
}

async function run(
  store: Store,
  { op = "decide" }: Step,
  requested: Counter,
  capacity: number,
  now: number,
): Promise<Outcome | undefined> {
  if (op === "reset") {
    await store.reset([requested], now);
    return undefined;
  }
  if (op === "adjust") {
    const [tally] = await store.adjust([requested], now);
    return outcomeOf(tally as Tally, capacity);
  }
  const verdict = await store.decide([[requested]], now);
  expect(verdict.now, "the time of the decision").toBe(now);
  const [{ admitted, tallies }] = verdict.groups as [GroupVerdict];
  const [tally] = tallies as [Tally];
  const { banMs, count } = tally;
  const outcome = { admitted, ...outcomeOf(tally, capacity) };
  if (!admitted) {
    return { ...outcome, retryMs: Math.max(banMs, quotaAfterMs(requested, tally, capacity)) };
  }
  return count > capacity
    ? { ...outcome, reservationDelayMs: quotaAfterMs({ ...requested, cost: 0 }, tally, capacity) }
    : outcome;
}

function outcomeOf({ count, resetMs, banMs }: Tally, capacity: number) {
  return { value: capacity - count, resetMs, banMs };
}

/** Returns an outcome in which missing fields have their default values. */
function complete({ banMs = 0, ...outcome }: Outcome): Outcome {
  return outcome.admitted === false
    ? { retryMs: outcome.resetMs, ...outcome, banMs }
    : { ...outcome, banMs };
}

/**
 * Compares an outcome with the expected outcome, which has a ban. The ban runs in real time, so its
 * time left may differ by up to {@link PATIENCE_MS}.
 */
function expectBan(outcome: Outcome | undefined, expected: Outcome, step: string): void {
  const { banMs: left = 0, retryMs, ...rest } = outcome as Outcome;
  const { banMs, retryMs: _, ...others } = complete(expected) as Outcome & { banMs: number };
  expect(rest, step).toEqual(others);
  expect(left, step).toBeGreaterThan(banMs - PATIENCE_MS);
  expect(left, step).toBeLessThanOrEqual(banMs + PATIENCE_MS);
  if (outcome?.admitted === false) {
    expect(retryMs, step).toBe(Math.max(left, rest.resetMs));
  }
}
