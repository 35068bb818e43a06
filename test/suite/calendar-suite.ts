import { describe, expect, it } from "vitest";
import { type Calendar, unitLengthMs } from "../../src/config/calendar.ts";
import { type Demand, type GroupVerdict, windowAt } from "../../src/engine/counter.ts";
import type { Store } from "../../src/stores/store.ts";
import { type CalendarMoment, calendarFor, calendarMoments } from "./calendar-cases.ts";
import { type ExpectedWindow, expectedWindow } from "./calendar-oracle.ts";
import { bans, counter } from "./counters.ts";
import { HOUR, MINUTE } from "./driver.ts";
import { verdictOf } from "./verdict.ts";

/** Returns a new counter with calendar windows. */
export function calendarCounter(calendar: Calendar, fields: Partial<Demand> = {}): Demand {
  return counter({ windowMs: unitLengthMs(calendar.unit), calendar, ...fields });
}

/** A time, with a calendar in every zone and the window of each at this time. */
export interface ExpectedMoment extends CalendarMoment {
  readonly windows: readonly ExpectedWindow[];
}

/** Generates random times in the future with the windows that a store must choose. */
export function expectedMoments(count: number): ExpectedMoment[] {
  return calendarMoments(count).map(({ now, calendars }) => {
    return { now, calendars, windows: calendars.map((each) => expectedWindow(each, now)) };
  });
}

/**
 * Checks that a store chooses the expected windows at a time: their ends, and their numbers. A store
 * takes quota back only if the number of its window is right.
 *
 * @param identity the identity of the counters. Each call has counters of its own
 * @param at the time to pass to the store; undefined if the store uses its own clock
 */
export async function checkMoment(
  store: Store,
  { now, calendars, windows }: ExpectedMoment,
  identity: string,
  at: number | undefined = now,
): Promise<void> {
  const counters = calendars.map((calendar) => calendarCounter(calendar, { identity }));
  const first = await verdictOf(store.decide([counters], at));
  const { admitted, tallies } = first.groups[0] as GroupVerdict;
  const found = tallies.map(({ count, resetMs }, index) => {
    return { id: calendars[index]?.id, count, endsAt: first.now + resetMs };
  });
  const expected = calendars.map(({ id }, index) => {
    return { id, count: 1, endsAt: windows[index]?.endsAt };
  });
  expect({ now: first.now, admitted, found }).toEqual({ now, admitted: true, found: expected });
  const unused = counters.map((each, index) => {
    return { counter: each, quota: 1, window: windows[index]?.index as number };
  });
  const reads = counters.map((each) => ({ ...each, cost: 0 }));
  const second = await verdictOf(store.decide([reads], at, unused));
  const counts = (second.groups[0] as GroupVerdict).tallies.map(({ count }) => count);
  expect(counts, JSON.stringify(calendars.map(({ id }) => id))).toEqual(calendars.map(() => 0));
}

/** Tests that a store counts in windows of the calendar. */
export function calendarSuite(createStore: () => Store): void {
  describe("windows of the calendar", () => {
    const store = createStore();
    const decide = async (each: Demand, now: number) => {
      const { groups } = await verdictOf(store.decide([[each]], now));
      const { admitted, tallies } = groups[0] as GroupVerdict;
      return { admitted, count: tallies[0]?.count, resetMs: tallies[0]?.resetMs };
    };

    it("end when those of Temporal end, in every zone", async () => {
      for (const { now, calendars, windows } of expectedMoments(4)) {
        const counters = calendars.map((calendar) => calendarCounter(calendar));
        const { groups } = await verdictOf(store.decide([counters], now));
        const { tallies } = groups[0] as GroupVerdict;
        expect(tallies.map(({ resetMs }) => resetMs)).toEqual(
          windows.map(({ endsAt }) => endsAt - now),
        );
      }
    });

    it.each([
      ["a month from the 31st", calendarFor("month", "UTC", "31"), Date.UTC(2044, 1, 10)],
      ["29 February", calendarFor("day", "UTC"), Date.UTC(2044, 1, 29, 12)],
      ["the last week of a year", calendarFor("week", "Asia/Tokyo"), Date.UTC(2043, 11, 31)],
      ["a year", calendarFor("year", "America/New_York", "07-01"), Date.UTC(2044, 2, 1)],
    ])("begin once: %s", async (_, calendar, now) => {
      const { startsAt, endsAt } = expectedWindow(calendar, now);
      const each = calendarCounter(calendar, { limit: 2 });
      const length = endsAt - startsAt;
      expect(await decide(each, startsAt)).toEqual({ admitted: true, count: 1, resetMs: length });
      expect(await decide(each, endsAt - 2)).toEqual({ admitted: true, count: 2, resetMs: 2 });
      expect(await decide(each, endsAt - 1)).toEqual({ admitted: false, count: 2, resetMs: 1 });
      expect(await decide(each, endsAt)).toMatchObject({ admitted: true, count: 1 });
    });

    it("repay used quota one by one if quota rolls over", async () => {
      const calendar = calendarFor("month", "UTC");
      const each = calendarCounter(calendar, { limit: 3, ceiling: 8, rollsOver: true });
      expect(await decide({ ...each, cost: 8 }, Date.UTC(2044, 0, 31))).toMatchObject({ count: 8 });
      expect(await decide({ ...each, cost: 0 }, Date.UTC(2044, 1, 29))).toMatchObject({ count: 5 });
      expect(await decide({ ...each, cost: 0 }, Date.UTC(2044, 3, 30))).toMatchObject({ count: 0 });
    });

    it("give a reserve back only in its window, for each of several identities", async () => {
      const month = calendarCounter(calendarFor("month", "UTC"), { cost: 3, limit: 9 });
      const day = calendarCounter(calendarFor("day", "Europe/Berlin"), { cost: 3, limit: 9 });
      const chargedAt = Date.UTC(2044, 1, 29, 22, 59);
      const counts = async (now: number) => {
        const reads = [month, day].map((each) => ({ ...each, cost: 0 }));
        const { groups } = await verdictOf(store.decide([reads], now));
        return (groups[0] as GroupVerdict).tallies.map(({ count }) => count);
      };
      const giveBack = (now: number) =>
        store.adjust(
          [month, day].map((each) => {
            return { ...each, cost: -1, chargedIn: windowAt(chargedAt, each).index };
          }),
          now,
        );
      for (const now of [chargedAt, chargedAt + 2 * MINUTE])
        await verdictOf(store.decide([[month, day]], now));
      // The day has ended, but not the month.
      await giveBack(chargedAt + 2 * MINUTE);
      expect(await counts(chargedAt + 2 * MINUTE)).toEqual([5, 3]);
      await verdictOf(store.decide([[month, day]], chargedAt + 62 * MINUTE));
      await giveBack(chargedAt + 62 * MINUTE);
      expect(await counts(chargedAt + 62 * MINUTE)).toEqual([3, 6]);
    });

    it.each([
      ["one length", bans(HOUR)],
      ["several lengths", { lengthsMs: [HOUR, 2 * HOUR], forgetAfterMs: HOUR }],
    ])("deny a group of several identities by a ban of %s, and charge none", async (_, ban) => {
      const now = Date.UTC(2044, 1, 29, 23, 59);
      const login = calendarCounter(calendarFor("month", "UTC"), {
        limit: 1,
        ban,
      });
      const day = calendarCounter(calendarFor("day", "Europe/Berlin"));
      const admitted: (boolean | undefined)[] = [];
      for (const at of [now, now, now + 2 * MINUTE]) {
        admitted.push((await verdictOf(store.decide([[day, login]], at))).groups[0]?.admitted);
      }
      expect(admitted).toEqual([true, false, false]);
      expect(await decide({ ...day, cost: 0 }, now)).toMatchObject({ count: 1 });
      await store.reset([login], now + 2 * MINUTE);
      expect(await decide(login, now + 2 * MINUTE)).toMatchObject({ admitted: true, count: 1 });
    });

    it("take a charge back, and are emptied by a reset", async () => {
      const now = Date.UTC(2044, 4, 31, 23, 59);
      const each = calendarCounter(calendarFor("day", "Europe/Berlin"));
      expect(await decide({ ...each, cost: 4 }, now)).toMatchObject({ count: 4 });
      const [tally] = await store.adjust([{ ...each, cost: -1 }], now);
      expect(tally?.count).toBe(3);
      await store.reset([each], now);
      expect(await decide({ ...each, cost: 0 }, now)).toMatchObject({ count: 0 });
    });
  });
}
