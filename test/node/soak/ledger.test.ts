import { describe, expect, it } from "vitest";
import { Ledger } from "../../../soak/ledger.ts";

const BOUND = { limit: 3, windowMs: 1000 };

/** A ledger of requests that were each sent and answered at these times, with all windows closed. */
function ledgerOf(times: [sentAt: number, answeredAt: number][], losses: number[] = []): Ledger {
  const ledger = new Ledger();
  for (const time of losses) ledger.lostAt(time);
  for (const [sentAt, answeredAt] of times) {
    ledger.record("api", "someone", BOUND, sentAt, answeredAt);
  }
  ledger.close(Number.POSITIVE_INFINITY);
  return ledger;
}

const times = (count: number, sentAt: number, answeredAt = sentAt) =>
  Array.from({ length: count }, (): [number, number] => [sentAt, answeredAt]);

describe("the soak's ledger", () => {
  it("finds nothing where the limit was admitted in each window", () => {
    const { excesses, windows } = ledgerOf([...times(3, 5000), ...times(3, 6999)]);
    expect(excesses).toEqual([]);
    expect(windows).toBe(2);
  });

  it("finds one request too many", () => {
    expect(ledgerOf(times(4, 5000, 5999)).excesses).toEqual([
      { name: "api", client: "someone", window: 5, admitted: 4, bound: 3 },
    ]);
  });

  it("holds what was under way at a window's end against both windows together", () => {
    expect(ledgerOf([...times(6, 5999, 6001)]).excesses).toEqual([]);
    const { excesses } = ledgerOf([...times(3, 5000), ...times(1, 5999, 6001), ...times(3, 6500)]);
    expect(excesses).toMatchObject([{ admitted: 7, bound: 6 }]);
  });

  it("allows the limit once more in a window in which the store lost its counts, and no more", () => {
    expect(ledgerOf(times(6, 5000), [5500]).excesses).toEqual([]);
    expect(ledgerOf(times(7, 5000), [5500]).excesses).toMatchObject([{ admitted: 7, bound: 6 }]);
    expect(ledgerOf(times(6, 5000), [6500]).excesses).toHaveLength(1);
  });

  it("looks at a window once it and the next one have ended", () => {
    const ledger = new Ledger();
    ledger.record("api", "someone", BOUND, 5000, 5000);
    ledger.close(7999);
    expect(ledger.windows).toBe(0);
    ledger.close(8000);
    expect(ledger.windows).toBe(1);
  });
});
