import { describe, expect, it } from "vitest";
import { Ledger } from "../../../soak/ledger.ts";

const BOUND = { limit: 3, windowMs: 1000 };

/** Returns a ledger that has recorded requests at these times, and has checked all windows. */
function ledgerOf(times: [sentAt: number, answeredAt: number][], losses: number[] = []): Ledger {
  const ledger = new Ledger();
  for (const time of losses) ledger.recordLoss(time);
  for (const [sentAt, answeredAt] of times) {
    ledger.record("api", "someone", BOUND, sentAt, answeredAt);
  }
  ledger.checkUntil(Number.POSITIVE_INFINITY);
  return ledger;
}

const times = (count: number, sentAt: number, answeredAt = sentAt) =>
  Array.from({ length: count }, (): [number, number] => [sentAt, answeredAt]);

describe("the soak's ledger", () => {
  it("accepts windows that admitted exactly the limit", () => {
    const { excesses, windows } = ledgerOf([...times(3, 5000), ...times(3, 6999)]);
    expect(excesses).toEqual([]);
    expect(windows).toBe(2);
  });

  it("reports a window that admitted one request above its limit", () => {
    expect(ledgerOf(times(4, 5000, 5999)).excesses).toEqual([
      { name: "api", client: "someone", window: 5, admitted: 4, bound: 3 },
    ]);
  });

  it("compares requests that cross the end of a window with the limits of both windows", () => {
    expect(ledgerOf([...times(6, 5999, 6001)]).excesses).toEqual([]);
    const { excesses } = ledgerOf([...times(3, 5000), ...times(1, 5999, 6001), ...times(3, 6500)]);
    expect(excesses).toMatchObject([{ admitted: 7, bound: 6 }]);
  });

  it("allows at most twice the limit in a window in which the store lost its counters", () => {
    expect(ledgerOf(times(6, 5000), [5500]).excesses).toEqual([]);
    expect(ledgerOf(times(7, 5000), [5500]).excesses).toMatchObject([{ admitted: 7, bound: 6 }]);
    expect(ledgerOf(times(6, 5000), [6500]).excesses).toHaveLength(1);
  });

  it("checks a window after the next window has ended too", () => {
    const ledger = new Ledger();
    ledger.record("api", "someone", BOUND, 5000, 5000);
    ledger.checkUntil(7999);
    expect(ledger.windows).toBe(0);
    ledger.checkUntil(8000);
    expect(ledger.windows).toBe(1);
  });
});
