import { describe, expect, it } from "vitest";
import type { Store } from "../../src/stores/store.ts";
import { bans, counter } from "./counters.ts";
import type { ExpiryOptions } from "./driver.ts";
import { baseOf, complete, type Outcome, prepareStep, runStep } from "./vector.ts";
import { VECTORS } from "./vectors.ts";
import { verdictOf } from "./verdict.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** The maximum real time that may pass in a test after a ban begins, in milliseconds. */
const PATIENCE_MS = 10_000;

/**
 * Compares a store's answers with the numbers in vectors.ts. If keys expire by the store's clock,
 * bans end by that clock too. For such a store, the suite skips the vectors in which a ban ends,
 * and tests the end of a ban in real time.
 */
export function vectorSuite(createStore: () => Store, { ageKeys }: ExpiryOptions): void {
  describe("vectors", () => {
    const store = createStore();
    const vectors = VECTORS.filter(({ endsBan }) => !(endsBan && ageKeys));

    it.each(vectors)("$name", async (vector) => {
      const base = baseOf(vector);
      const key = counter();
      for (const [index, step] of vector.steps.entries()) {
        const prepared = prepareStep(key, vector, step, base);
        const { outcome, decidedAt } = await runStep(store, step, prepared);
        if (decidedAt !== undefined) {
          expect(decidedAt, "the time of the decision").toBe(prepared.now);
        }
        if (ageKeys && step.expect?.banMs) {
          expectBan(outcome, step.expect, `step ${index}`);
        } else {
          expect(outcome, `step ${index}`).toEqual(step.expect && complete(step.expect));
        }
      }
    });

    if (ageKeys)
      it("a ban ends by the clock of the store", async () => {
        const banned = counter({ limit: 1, ban: bans(100) });
        const admittedAt = async (now: number) =>
          (await verdictOf(store.decide([[banned]], now))).groups[0]?.admitted;
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
 * Compares an outcome with the expected outcome, which has a ban. The ban runs in real time, so its
 * time left may differ by up to {@link PATIENCE_MS}.
 */
function expectBan(outcome: Outcome | undefined, expected: Outcome, step: string): void {
  const { banMs: left = 0, retryMs, ...rest } = outcome as Outcome;
  const { banMs, retryMs: _, ...others } = complete(expected);
  expect(rest, step).toEqual(others);
  expect(left, step).toBeGreaterThan(banMs - PATIENCE_MS);
  expect(left, step).toBeLessThanOrEqual(banMs + PATIENCE_MS);
  if (outcome?.admitted === false) {
    expect(retryMs, step).toBe(Math.max(left, rest.resetMs));
  }
}
