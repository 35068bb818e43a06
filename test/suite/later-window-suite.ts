import { describe, expect, it } from "vitest";
import { type Calendar, unitLengthMs } from "../../src/config/calendar.ts";
import {
  type Demand,
  longestWindowMs,
  type Tally,
  windowEndingNear,
  windowStart,
} from "../../src/engine/counter.ts";
import { quotaAfterMs } from "../../src/engine/fixed-window.ts";
import { calendarFor } from "./calendar-cases.ts";
import { counter } from "./counters.ts";
import { DAY, type Driver, HOUR, NOW } from "./driver.ts";

/** A limit of 10 with a capacity of 15, of which unused quota rolls over. */
function rolling(fields: Partial<Demand> = {}): Demand {
  return counter({ limit: 10, ceiling: 15, rollsOver: true, windowMs: HOUR, ...fields });
}

function inCalendar(calendar: Calendar, fields: Partial<Demand> = {}): Demand {
  return rolling({ windowMs: unitLengthMs(calendar.unit), calendar, ...fields });
}

/** A start of a window of these calendars. It is in the future. */
const JUNE = Date.UTC(2044, 5, 1);
const month = calendarFor("month", "UTC");

interface Case {
  /** The counter at the first charge. */
  readonly before: Demand;
  /** The counter after the change, whose windows may begin at other times. */
  readonly after: Demand;
  readonly chargedAt: number;
  readonly triedAt: number;
  readonly windowEndsAt: number;
}

/** A case in which the clock steps back. */
function stepBack(each: Demand, chargedAt: number, backMs: number, windowEndsAt: number): Case {
  return { before: each, after: each, chargedAt, triedAt: chargedAt - backMs, windowEndsAt };
}

/** A case in which a deploy changes the start of the windows. */
function deploy(before: Demand, after: Partial<Demand>, now: number, windowEndsAt: number): Case {
  return {
    before,
    after: { ...before, ...after },
    chargedAt: now,
    triedAt: now,
    windowEndsAt,
  };
}

/** Returns new cases, with new counters. */
const CASES: Readonly<Record<string, () => Case>> = {
  "an hour; the clock steps back": () => stepBack(rolling(), NOW + 100, 500, NOW + HOUR),
  "an hour; the clock steps back by three windows": () =>
    stepBack(rolling(), NOW + 100, 3 * HOUR, NOW + HOUR),
  "an hour; the clock steps back, and the windows have an offset": () =>
    stepBack(rolling({ offsetMs: 60_000 }), NOW + 60_000, 1, NOW + HOUR + 60_000),
  "an hour; the start changes": () =>
    deploy(rolling(), { offsetMs: HOUR / 2 }, NOW + 1000, NOW + 1.5 * HOUR),
  "a month; the clock steps back": () =>
    stepBack(inCalendar(month), JUNE + 100, 500, Date.UTC(2044, 6, 1)),
  "a month; the start changes": () =>
    deploy(
      inCalendar(month),
      { calendar: calendarFor("month", "UTC", "15") },
      Date.UTC(2044, 10, 10, 12),
      Date.UTC(2044, 11, 15),
    ),
  "a day; the time zone changes": () =>
    deploy(
      inCalendar(calendarFor("day", "Pacific/Kiritimati")),
      { calendar: calendarFor("day", "UTC") },
      Date.UTC(2044, 10, 10, 12),
      Date.UTC(2044, 10, 12),
    ),
  "a day with a change of the clocks; the clock steps back": () =>
    stepBack(
      inCalendar(calendarFor("day", "Europe/Berlin")),
      // On 27 March 2044, clocks in Berlin skip an hour.
      Date.UTC(2044, 2, 26, 23),
      1,
      Date.UTC(2044, 2, 27, 22),
    ),
};

/**
 * The part of the store suite for rollover after the clock has stepped back, so that the last charge belongs to a later
 * window. New quota comes at the end of that window, so no client must retry earlier.
 */
export function describeLaterWindows({ store, decide }: Driver): void {
  async function tallyOf(each: Demand, now: number) {
    const { admitted, tallies } = await decide([each], now);
    return { admitted, tally: tallies[0] as Tally };
  }

  describe("a count of a later window than the clock's", () => {
    it.each(Object.keys(CASES))("is reset when that window ends: %s", async (name) => {
      const { before, after, chargedAt, triedAt, windowEndsAt } = (CASES[name] as () => Case)();
      expect((await tallyOf({ ...before, cost: 15 }, chargedAt)).admitted).toBe(true);
      const { admitted, tally } = await tallyOf(after, triedAt);
      const resetMs = windowEndsAt - triedAt;
      expect({ admitted, tally }).toEqual({
        admitted: false,
        tally: { count: 15, resetMs, banMs: 0 },
      });
      expect(quotaAfterMs(after, tally, 15, triedAt)).toBe(resetMs);
      const [adjusted] = await store.adjust([{ ...after, cost: 0 }], triedAt);
      expect(adjusted).toEqual(tally);
      // The first request after the promised time is admitted, and none before.
      expect(await tallyOf(after, windowEndsAt - 1)).toMatchObject({
        admitted: false,
        tally: { resetMs: 1 },
      });
      expect((await tallyOf(after, windowEndsAt)).admitted).toBe(true);
    });

    it.each(Object.keys(CASES))("repays reservations after that window: %s", async (name) => {
      const { before, after, chargedAt, triedAt, windowEndsAt } = (CASES[name] as () => Case)();
      const reserving = { ceiling: 40 };
      await tallyOf({ ...before, ...reserving, cost: 15 }, chargedAt);
      const requested = { ...after, ...reserving, cost: 12 };
      const { admitted, tally } = await tallyOf(requested, triedAt);
      expect({ admitted, tally }).toMatchObject({ admitted: true, tally: { count: 27 } });
      // 12 are reserved. The second grant of 10 is at the end of the window after the later one.
      const grantedAt =
        after.calendar === undefined
          ? windowEndsAt + after.windowMs
          : windowStart(after, windowEndingNear(windowEndsAt, after).index + 2);
      const delayMs = quotaAfterMs({ ...requested, cost: 0 }, tally, 15, triedAt);
      expect(triedAt + delayMs).toBe(grantedAt);
      const read = { ...after, ...reserving, cost: 0 };
      expect((await tallyOf(read, grantedAt - 1)).tally.count).toBe(17);
      expect((await tallyOf(read, grantedAt)).tally.count).toBe(7);
    });

    it.each([DAY, 40 * DAY, 70 * DAY, 2000 * DAY])(
      "is never reset before that window ends, if the clock steps back by %d ms",
      async (backMs) => {
        for (const unit of ["day", "week", "month", "year"] as const) {
          const calendar = calendarFor(unit, "Europe/Berlin");
          const each = inCalendar(calendar);
          const chargedAt = Date.UTC(2050, 4, 5, 6);
          const { tally: charged } = await tallyOf({ ...each, cost: 15 }, chargedAt);
          const endsAt = chargedAt + charged.resetMs;
          const triedAt = chargedAt - backMs;
          const { admitted, tally } = await tallyOf(each, triedAt);
          expect(admitted).toBe(false);
          const promisedAt = triedAt + quotaAfterMs(each, tally, 15, triedAt);
          expect(promisedAt).toBeGreaterThanOrEqual(endsAt);
          // A store that knows no calendar adds the longest length of the windows.
          const windows = Math.ceil(backMs / unitLengthMs(unit)) + 1;
          const lateMs = (longestWindowMs(each) - unitLengthMs(unit)) * windows + windows * 4 * DAY;
          expect(promisedAt).toBeLessThan(endsAt + lateMs);
          expect((await tallyOf(each, promisedAt)).admitted).toBe(true);
        }
      },
    );

    it("is reset at the end of its own window in each of two counters", async () => {
      const [late, plain] = [rolling(), rolling()];
      await tallyOf({ ...late, cost: 15 }, NOW);
      await tallyOf({ ...plain, cost: 15 }, NOW - 1);
      const { admitted, tallies } = await decide([late, plain], NOW - 1);
      expect(admitted).toBe(false);
      // A store may leave out one of the two counters, because the other one is exhausted too.
      const resets = tallies.map((tally, index) => tally?.resetMs ?? [HOUR + 1, 1][index]);
      expect(resets).toEqual([HOUR + 1, 1]);
    });
  });
}
