import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { windowAt } from "../../../../src/engine/counter.ts";
import {
  isValidAt,
  type StoreCall,
  snapshotOf,
  tallyOf,
} from "../../../../src/stores/isolate/snapshot.ts";
import { counter } from "../../../suite/counters.ts";

/** 2023-11-14T22:15:00Z, the beginning of a minute: window 28333335. */
const NOW = 1_700_000_100_000;
const MINUTE = 60_000;

describe("what is known by a clock that was given", () => {
  const given = (decidedAt: number): StoreCall => ({
    sentAt: decidedAt + 7,
    answeredAt: decidedAt + 90,
    decidedAt,
    isGiven: true,
  });

  it("holds for the whole of its window, to the millisecond", () => {
    const tally = { count: 3, resetMs: 20_000, banMs: 0 };
    const known = snapshotOf(counter(), tally, given(NOW + 40_000));
    expect(known).toMatchObject({
      count: 3,
      window: 28_333_335,
      endsAt: NOW + MINUTE,
      clockOffsetMs: 0,
    });
    expect([-1, 0, MINUTE - 1, MINUTE].map((past) => isValidAt(known, NOW + past))).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  it("holds where the offset says that windows begin", () => {
    const quota = counter({ offsetMs: 17_000 });
    const tally = { count: 3, resetMs: 1, banMs: 0 };
    const known = snapshotOf(quota, tally, given(NOW + 16_999));
    expect(known.window).toBe(28_333_334);
    expect([-43_001, -43_000, 16_999, 17_000].map((past) => isValidAt(known, NOW + past))).toEqual([
      false,
      true,
      true,
      false,
    ]);
  });

  it("counts down to the window's end, and a ban to its own", () => {
    const tally = { count: 5, resetMs: 20_000, banMs: 90_000 };
    const known = snapshotOf(counter(), tally, given(NOW + 40_000));
    expect(tallyOf(known, NOW + 40_000)).toEqual(tally);
    expect(tallyOf(known, NOW + 50_001)).toEqual({ count: 5, resetMs: 9999, banMs: 79_999 });
    // Never a window that ends now, nor less of a ban than none.
    expect(tallyOf(known, NOW + 60_000)).toEqual({ count: 5, resetMs: 1, banMs: 70_000 });
    expect(tallyOf(known, NOW + 130_001)).toEqual({ count: 5, resetMs: 1, banMs: 0 });
  });

  it("is no ban where there is none", () => {
    const known = snapshotOf(counter(), { count: 5, resetMs: 1, banMs: 0 }, given(NOW + 59_999));
    expect(known.bannedUntil).toBe(0);
  });
});

describe("what is known by the store's clock", () => {
  it("holds from when it was asked, for as long as the window lasted then", () => {
    const call = { sentAt: 1000, decidedAt: NOW + 40_000, answeredAt: 1080, isGiven: false };
    const known = snapshotOf(counter(), { count: 3, resetMs: 20_000, banMs: 0 }, call);
    expect([999, 1000, 20_999, 21_000].map((now) => isValidAt(known, now))).toEqual([
      false,
      true,
      true,
      false,
    ]);
    expect(known).toMatchObject({ window: 28_333_335, endsAt: NOW + MINUTE });
  });

  /** A store and an isolate whose clocks differ, and a call that takes its time either way. */
  const calls = fc.record({
    skewMs: fc.integer({ min: -100_000_000, max: 100_000_000 }),
    thereMs: fc.nat({ max: 900 }),
    backMs: fc.nat({ max: 900 }),
    /** When the store decided, in its own window. */
    pastMs: fc.nat({ max: MINUTE - 1 }),
    offsetMs: fc.nat({ max: MINUTE - 1 }),
    banMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 500_000 })),
    laterMs: fc.nat({ max: MINUTE }),
  });

  it("never outlasts the window, nor tells of a wait that is too short or longer by more than the round trip", () => {
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
        const known = snapshotOf(quota, tally, call);

        expect(known.endsAt).toBe(trueEnd);
        expect(known.window).toBe(windowAt(decidedAt, quota).index);
        expect(known.validUntil).toBeLessThanOrEqual(toLocal(trueEnd));
        expect(known.validUntil).toBeGreaterThanOrEqual(toLocal(trueEnd) - thereMs);
        expect(isValidAt(known, sentAt)).toBe(true);
        expect(isValidAt(known, sentAt - 1)).toBe(false);

        const local = answeredAt + laterMs;
        const truth = local - skewMs;
        const told = tallyOf(known, local + known.clockOffsetMs);
        expect(told.resetMs).toBeGreaterThanOrEqual(trueEnd - truth);
        expect(told.resetMs).toBeLessThanOrEqual(Math.max(1, trueEnd - truth + backMs));
        const banLeft = Math.max(0, decidedAt + banMs - truth);
        if (banMs > 0) expect(told.banMs).toBeGreaterThanOrEqual(banLeft);
        expect(told.banMs).toBeLessThanOrEqual(banMs === 0 ? 0 : Math.max(0, banLeft + backMs));
      }),
      { seed: 20_260_103, numRuns: 1000 },
    );
  });

  it("tells one end of one window, whatever the call took", () => {
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
      { seed: 20_260_104, numRuns: 200 },
    );
  });
});
