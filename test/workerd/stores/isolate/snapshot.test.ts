import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { windowAt } from "../../../../src/engine/counter.ts";
import {
  isValidAt,
  type StoreCall,
  snapshotOf,
  tallyOf,
} from "../../../../src/stores/isolate/lease-book.ts";
import { counter } from "../../../suite/counters.ts";
import { propertyRuns } from "../../../suite/runs.ts";

/** 2023-11-14T22:15:00Z, the beginning of the minute with window number 28333335. */
const NOW = 1_700_000_100_000;
const MINUTE = 60_000;

describe("a snapshot by the caller's clock", () => {
  const given = (decidedAt: number): StoreCall => ({
    sentAt: decidedAt + 7,
    answeredAt: decidedAt + 90,
    decidedAt,
    isGiven: true,
  });

  it("is valid exactly from the start of its window to the end", () => {
    const tally = { count: 3, resetMs: 20_000, banMs: 0 };
    const snapshot = snapshotOf(counter(), tally, given(NOW + 40_000));
    expect(snapshot).toMatchObject({
      count: 3,
      window: 28_333_335,
      endsAt: NOW + MINUTE,
      clockOffsetMs: 0,
    });
    expect([-1, 0, MINUTE - 1, MINUTE].map((past) => isValidAt(snapshot, NOW + past))).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  it("is valid for a window with an offset", () => {
    const quota = counter({ offsetMs: 17_000 });
    const tally = { count: 3, resetMs: 1, banMs: 0 };
    const snapshot = snapshotOf(quota, tally, given(NOW + 16_999));
    expect(snapshot.window).toBe(28_333_334);
    expect(
      [-43_001, -43_000, 16_999, 17_000].map((past) => isValidAt(snapshot, NOW + past)),
    ).toEqual([false, true, true, false]);
  });

  it("contains the time left until the end of the window and of a ban", () => {
    const tally = { count: 5, resetMs: 20_000, banMs: 90_000 };
    const snapshot = snapshotOf(counter(), tally, given(NOW + 40_000));
    expect(tallyOf(snapshot, NOW + 40_000)).toEqual(tally);
    expect(tallyOf(snapshot, NOW + 50_001)).toEqual({ count: 5, resetMs: 9999, banMs: 79_999 });
    // The time left of the window is at least 1 ms, and the time left of a ban is at least 0 ms.
    expect(tallyOf(snapshot, NOW + 60_000)).toEqual({ count: 5, resetMs: 1, banMs: 70_000 });
    expect(tallyOf(snapshot, NOW + 130_001)).toEqual({ count: 5, resetMs: 1, banMs: 0 });
  });

  it("has no ban if the tally has none", () => {
    const snapshot = snapshotOf(counter(), { count: 5, resetMs: 1, banMs: 0 }, given(NOW + 59_999));
    expect(snapshot.bannedUntil).toBe(0);
  });
});

describe("a snapshot by the store's clock", () => {
  it("is valid from the start of the call, for the time that was left of the window", () => {
    const call = { sentAt: 1000, decidedAt: NOW + 40_000, answeredAt: 1080, isGiven: false };
    const snapshot = snapshotOf(counter(), { count: 3, resetMs: 20_000, banMs: 0 }, call);
    expect([999, 1000, 20_999, 21_000].map((now) => isValidAt(snapshot, now))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect(snapshot).toMatchObject({ window: 28_333_335, endsAt: NOW + MINUTE });
  });

  /** Calls with a delay in each direction, between a store and an isolate with different clocks. */
  const calls = fc.record({
    skewMs: fc.integer({ min: -100_000_000, max: 100_000_000 }),
    thereMs: fc.nat({ max: 900 }),
    backMs: fc.nat({ max: 900 }),
    /** How long the window had lasted when the store decided, in milliseconds. */
    pastMs: fc.nat({ max: MINUTE - 1 }),
    offsetMs: fc.nat({ max: MINUTE - 1 }),
    banMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 500_000 })),
    laterMs: fc.nat({ max: MINUTE }),
  });

  it("is never valid after its window, and reports waits that are at most one round trip too long", () => {
    fc.assert(
      fc.property(calls, ({ skewMs, thereMs, backMs, pastMs, offsetMs, banMs, laterMs }) => {
        const quota = counter({ offsetMs });
        const decidedAt = NOW + offsetMs + pastMs;
        const trueEnd = NOW + offsetMs + MINUTE;
        const toLocal = (storeTime: number) => storeTime + skewMs;
        const sentAt = toLocal(decidedAt - thereMs);
        const answeredAt = toLocal(decidedAt + backMs);
        const tally = { count: 5, resetMs: trueEnd - decidedAt, banMs };
        const call = { sentAt, answeredAt, decidedAt, isGiven: false };
        const snapshot = snapshotOf(quota, tally, call);

        expect(snapshot.endsAt).toBe(trueEnd);
        expect(snapshot.window).toBe(windowAt(decidedAt, quota).index);
        expect(snapshot.validUntil).toBeLessThanOrEqual(toLocal(trueEnd));
        expect(snapshot.validUntil).toBeGreaterThanOrEqual(toLocal(trueEnd) - thereMs);
        expect(isValidAt(snapshot, sentAt)).toBe(true);
        expect(isValidAt(snapshot, sentAt - 1)).toBe(false);

        const local = answeredAt + laterMs;
        const truth = local - skewMs;
        const reported = tallyOf(snapshot, local + snapshot.clockOffsetMs);
        expect(reported.resetMs).toBeGreaterThanOrEqual(trueEnd - truth);
        expect(reported.resetMs).toBeLessThanOrEqual(Math.max(1, trueEnd - truth + backMs));
        const banLeft = Math.max(0, decidedAt + banMs - truth);
        if (banMs > 0) expect(reported.banMs).toBeGreaterThanOrEqual(banLeft);
        expect(reported.banMs).toBeLessThanOrEqual(banMs === 0 ? 0 : Math.max(0, banLeft + backMs));
      }),
      propertyRuns(1000),
    );
  });

  it("has the same end of the window for calls of any duration", () => {
    const answers = fc.array(calls, { minLength: 2, maxLength: 5 });
    fc.assert(
      fc.property(answers, (several) => {
        const ends = several.map(({ skewMs, thereMs, backMs, pastMs }) => {
          const decidedAt = NOW + pastMs;
          const local = decidedAt + skewMs;
          const call = { decidedAt, sentAt: local - thereMs, answeredAt: local + backMs };
          const tally = { count: 1, resetMs: MINUTE - pastMs, banMs: 0 };
          return snapshotOf(counter(), tally, { ...call, isGiven: false }).endsAt;
        });
        expect(new Set(ends)).toEqual(new Set([NOW + MINUTE]));
      }),
      propertyRuns(200),
    );
  });
});
