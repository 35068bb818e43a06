import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createEngineStore } from "../../../dev/engine-store.ts";
import type { Demand, Tally } from "../../../src/engine/counter.ts";
import { quotaAfterMs } from "../../../src/engine/fixed-window.ts";
import { counter } from "../../suite/counters.ts";
import { propertyRuns } from "../../suite/runs.ts";
import { verdictOf } from "../../suite/verdict.ts";

const MINUTE = 60_000;

/** The state of Convex's limiter: a balance of quota, and the start of the balance's window. */
interface Balance {
  readonly value: number;
  readonly ts: number;
}

/**
 * Takes quota by the formula that Convex documents. Convex counts the quota left, and Weir counts
 * the quota used.
 */
function withdraw({ value, ts }: Balance, rate: number, max: number, count: number, now: number) {
  const elapsed = Math.floor((now - ts) / MINUTE);
  const left = Math.min(value + rate * elapsed, max) - count;
  const start = ts + elapsed * MINUTE;
  const retryMs = left < 0 ? start + MINUTE * Math.ceil(-left / rate) - now : 0;
  return { value: left, ts: start, retryMs };
}

describe("a counter that rolls over", () => {
  const requests = fc.array(
    fc.record({ passMs: fc.nat({ max: 4 * MINUTE }), cost: fc.nat({ max: 30 }) }),
    { minLength: 1, maxLength: 20 },
  );

  it("admits the same requests as Convex's formula, with the same quota left and time to retry", async () => {
    const quotas = fc.record({
      rate: fc.integer({ min: 1, max: 10 }),
      more: fc.nat({ max: 20 }),
      maxReserved: fc.nat({ max: 40 }),
    });
    const property = fc.asyncProperty(quotas, requests, async (quota, sequence) => {
      const { rate, more, maxReserved } = quota;
      const capacity = rate + more;
      const rolling = counter({ limit: rate, ceiling: capacity + maxReserved, rollsOver: true });
      const store = createEngineStore();
      let now = 0;
      let balance: Balance = { value: capacity, ts: 0 };
      for (const { passMs, cost } of sequence) {
        now += passMs;
        const requested: Demand = { ...rolling, cost };
        const { value, ts, retryMs } = withdraw(balance, rate, capacity, cost, now);
        const admitted = value >= -maxReserved;
        if (admitted) balance = { value, ts };
        const { groups } = await verdictOf(store.decide([[requested]], now));
        const tally = groups[0]?.tallies[0] as Tally;
        const missing = admitted ? { ...requested, cost: 0 } : requested;
        expect(groups[0]?.admitted).toBe(admitted);
        expect(quotaAfterMs(missing, tally, capacity, 0)).toBe(retryMs);
        if (admitted) expect(capacity - tally.count).toBe(value);
      }
    });
    await fc.assert(property, propertyRuns(2000));
  });
});
