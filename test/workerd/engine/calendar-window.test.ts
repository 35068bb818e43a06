import { describe, expect, it } from "vitest";
import type { CalendarUnit } from "../../../src/config/calendar.ts";
import { calendarWindowAt, calendarWindowStart } from "../../../src/engine/calendar-window.ts";
import { calendarCases, calendarFor, ZONES } from "../../suite/calendar-cases.ts";
import { clockChanges, expectedWindow } from "../../suite/calendar-oracle.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** The lengths of the windows of a calendar from one that contains a time, in hours. */
function hoursFrom(
  unit: CalendarUnit,
  zone: string,
  start: string,
  from: string,
  count: number,
): number[] {
  const calendar = calendarFor(unit, zone, start);
  const { index } = calendarWindowAt(calendar, Date.parse(from));
  return Array.from({ length: count }, (_, number) => {
    const begin = calendarWindowStart(calendar, index + number);
    return (calendarWindowStart(calendar, index + number + 1) - begin) / HOUR;
  });
}

/** The starts of windows, from one that contains a time. */
function startsFrom(
  unit: CalendarUnit,
  zone: string,
  start: string,
  from: string,
  count: number,
): string[] {
  const calendar = calendarFor(unit, zone, start);
  const { index } = calendarWindowAt(calendar, Date.parse(from));
  return Array.from({ length: count }, (_, number) =>
    new Date(calendarWindowStart(calendar, index + number)).toISOString().replace(":00.000Z", "Z"),
  );
}

describe("days around a change of the clocks", () => {
  it.each([
    ["Berlin, spring", "Europe/Berlin", "00:00", "2026-03-28T12:00Z", [24, 23, 24]],
    ["Berlin, autumn", "Europe/Berlin", "00:00", "2026-10-24T12:00Z", [24, 25, 24]],
    ["New York, spring", "America/New_York", "00:00", "2026-03-07T17:00Z", [24, 23, 24]],
    ["Sydney, spring in October", "Australia/Sydney", "00:00", "2026-10-03T12:00Z", [24, 23, 24]],
    ["Sydney, autumn in April", "Australia/Sydney", "00:00", "2026-04-04T12:00Z", [24, 25, 24]],
    [
      "Lord Howe, half an hour",
      "Australia/Lord_Howe",
      "00:00",
      "2026-10-03T12:00Z",
      [24, 23.5, 24],
    ],
    ["Lord Howe, autumn", "Australia/Lord_Howe", "00:00", "2026-04-04T12:00Z", [24, 24.5, 24]],
    ["Troll, two hours", "Antarctica/Troll", "00:00", "2026-03-28T12:00Z", [24, 22, 24]],
    ["Kathmandu, 15 minutes once", "Asia/Kathmandu", "00:00", "1985-12-31T12:00Z", [24, 23.75, 24]],
    ["Samoa, a day that never was", "Pacific/Apia", "00:00", "2011-12-29T12:00Z", [24, 0, 24]],
    ["Samoa, a start in that day", "Pacific/Apia", "09:00", "2011-12-29T20:00Z", [15, 9, 24]],
    ["São Paulo, no midnight", "America/Sao_Paulo", "00:00", "2018-11-03T12:00Z", [24, 23, 24]],
    ["São Paulo, 23:00 twice", "America/Sao_Paulo", "00:00", "2018-02-17T12:00Z", [25, 24, 24]],
    ["Havana, midnight twice", "America/Havana", "00:00", "2026-10-31T12:00Z", [24, 25, 24]],
    ["Berlin, a skipped start", "Europe/Berlin", "02:30", "2026-03-28T12:00Z", [23.5, 23.5, 24]],
    ["Berlin, a start shown twice", "Europe/Berlin", "02:30", "2026-10-24T12:00Z", [24, 25, 24]],
  ])("%s", (_, zone, start, from, hours) => {
    expect(hoursFrom("day", zone, start, from, hours.length)).toEqual(hours);
  });
});

describe("longer windows", () => {
  it.each<[string, CalendarUnit, string, string, string, string[]]>([
    [
      "months in UTC, with 29 February",
      ...(["month", "UTC", "1", "2028-01-31T23:59:59Z"] as const),
      ["2028-01-01T00:00Z", "2028-02-01T00:00Z", "2028-03-01T00:00Z"],
    ],
    [
      "months from the 31st, which begin on the last day of short months",
      ...(["month", "UTC", "31", "2026-01-31T00:00:00Z"] as const),
      ["2026-01-31T00:00Z", "2026-02-28T00:00Z", "2026-03-31T00:00Z", "2026-04-30T00:00Z"],
    ],
    [
      "months from the 31st in a leap year",
      ...(["month", "UTC", "31", "2028-02-29T00:00:00Z"] as const),
      ["2028-02-29T00:00Z", "2028-03-31T00:00Z"],
    ],
    [
      "a billing day at 9 o'clock in Berlin",
      ...(["month", "Europe/Berlin", "15 09:00", "2026-03-15T07:59:59Z"] as const),
      ["2026-02-15T08:00Z", "2026-03-15T08:00Z", "2026-04-15T07:00Z"],
    ],
    [
      "ISO weeks across the end of a year",
      ...(["week", "UTC", "monday", "2026-12-31T00:00:00Z"] as const),
      ["2026-12-28T00:00Z", "2027-01-04T00:00Z"],
    ],
    [
      "weeks from Sunday evening in New York, across a change",
      ...(["week", "America/New_York", "sunday 18:00", "2026-03-08T21:00:00Z"] as const),
      ["2026-03-01T23:00Z", "2026-03-08T22:00Z", "2026-03-15T22:00Z"],
    ],
    [
      "years in Tokyo",
      ...(["year", "Asia/Tokyo", "01-01", "2026-12-31T14:59:59Z"] as const),
      ["2025-12-31T15:00Z", "2026-12-31T15:00Z"],
    ],
    [
      "years from 29 February",
      ...(["year", "UTC", "02-29", "2027-12-31T00:00:00Z"] as const),
      ["2027-02-28T00:00Z", "2028-02-29T00:00Z", "2029-02-28T00:00Z"],
    ],
    [
      "the British tax year",
      ...(["year", "Europe/London", "04-06", "2026-04-05T22:59:59Z"] as const),
      ["2025-04-05T23:00Z", "2026-04-05T23:00Z"],
    ],
  ])("%s", (_, unit, zone, start, from, starts) => {
    expect(startsFrom(unit, zone, start, from, starts.length)).toEqual(starts);
  });
});

describe("the numbers of windows", () => {
  it.each<[CalendarUnit, string, number]>([
    ["day", "2026-11-22T12:00Z", 20_779],
    ["week", "1970-01-01T00:00Z", 0],
    ["week", "1970-01-05T00:00Z", 1],
    ["month", "2026-11-22T12:00Z", 56 * 12 + 10],
    ["year", "2026-11-22T12:00Z", 56],
  ])("counts the %s of %s since 1970", (unit, time, index) => {
    expect(calendarWindowAt(calendarFor(unit, "UTC"), Date.parse(time)).index).toBe(index);
  });

  it("do not depend on the zone, only on the local date", () => {
    const tokyo = calendarWindowAt(
      calendarFor("day", "Asia/Tokyo"),
      Date.parse("2026-11-21T15:00Z"),
    );
    expect(tokyo.index).toBe(20_779);
  });
});

it("agrees with Temporal at 10,000 random times in every zone", () => {
  const cases = calendarCases(10_000);
  expect(new Set(cases.map(({ calendar }) => calendar.timeZone)).size).toBe(ZONES.length);
  for (const { calendar, now } of cases) {
    const { index, startsAt, endsAt } = calendarWindowAt(calendar, now);
    const found = { index, startsAt, endsAt };
    expect(found, `${calendar.id} at ${now}`).toEqual(expectedWindow(calendar, now));
  }
});

it("covers the time line in order around every change of the clocks", () => {
  for (const zone of ZONES) {
    for (const start of ["00:00", "02:30", "23:45"]) {
      const calendar = calendarFor("day", zone, start);
      for (const change of clockChanges(zone, Date.UTC(1995, 0), Date.UTC(2027, 0)).slice(-40)) {
        const { index } = calendarWindowAt(calendar, change - 2 * DAY);
        for (let number = index; number < index + 5; number++) {
          const [start, end] = [0, 1].map((next) => calendarWindowStart(calendar, number + next));
          expect(start).toBeLessThanOrEqual(end as number);
          if (start === end) continue;
          expect(calendarWindowAt(calendar, start as number).index).toBe(number);
          expect(calendarWindowAt(calendar, (end as number) - 1).index).toBe(number);
        }
      }
    }
  }
});

describe("times that no calendar has", () => {
  it("continues with the longest length after the year 5000", () => {
    const calendar = calendarFor("month", "Europe/Berlin");
    for (const now of [1e14, 8.64e15, Number.MAX_SAFE_INTEGER]) {
      const { index, startsAt, endsAt } = calendarWindowAt(calendar, now);
      expect(startsAt).toBeLessThanOrEqual(now);
      expect(endsAt).toBeGreaterThan(now);
      expect(calendarWindowStart(calendar, index + 1)).toBe(endsAt);
    }
    expect(calendarWindowStart(calendar, 1e15)).toBeGreaterThan(1e24);
  });
});

it("computes the windows of 1,000 calendars once", () => {
  const calendars = Array.from({ length: 1000 }, (_, minute) => {
    const [hours, minutes] = [Math.floor(minute / 60), minute % 60].map((part) =>
      String(part).padStart(2, "0"),
    );
    return calendarFor("day", "Europe/Berlin", `${hours}:${minutes}`);
  });
  const windows = () => calendars.map((calendar) => calendarWindowAt(calendar, 1_700_000_000_000));
  const first = windows();
  // A computed window is a new object.
  for (const [index, window] of windows().entries()) expect(window).toBe(first[index]);
});
