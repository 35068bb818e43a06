import { type Calendar, calendarOf, parseCalendarStart } from "../../src/config/calendar.ts";
import { clockChanges } from "./calendar-oracle.ts";
import { randomOf } from "./random.ts";

/** Zones with every kind of clock change. */
export const ZONES = [
  "UTC",
  "Europe/Berlin",
  "Europe/London",
  // Its summer time is the standard time, and its winter time is the exception.
  "Europe/Dublin",
  "America/New_York",
  "America/Los_Angeles",
  // The clocks were changed a minute after midnight until 2011.
  "America/St_Johns",
  // Summer time began and ended at midnight.
  "America/Sao_Paulo",
  "America/Santiago",
  "America/Havana",
  "Asia/Beirut",
  "Africa/Cairo",
  // The clocks are changed for Ramadan.
  "Africa/Casablanca",
  "Asia/Tehran",
  // UTC+5:45, and UTC+5:30 until 1986.
  "Asia/Kathmandu",
  // Summer time is half an hour.
  "Australia/Lord_Howe",
  "Australia/Sydney",
  "Pacific/Chatham",
  // Samoa had no 30 December 2011.
  "Pacific/Apia",
  // The Line Islands had no 1 January 1995 (Kiritimati).
  "Pacific/Kiritimati",
  // Summer time is two hours.
  "Antarctica/Troll",
  "Asia/Tokyo",
] as const;

const STARTS = {
  day: ["00:00", "02:30", "09:00", "23:45", "00:30"],
  week: ["monday", "sunday 02:30", "friday 00:00", "saturday 23:59"],
  month: ["1", "15 09:00", "31", "30 02:30", "29 23:30", "31 00:30"],
  year: ["01-01", "02-29", "04-06 09:00", "12-31 23:59", "03-31 02:30"],
} as const;
const UNITS = ["day", "week", "month", "year"] as const;

const HOUR = 3_600_000;

/** A random calendar and a random time. */
export interface CalendarCase {
  readonly calendar: Calendar;
  readonly now: number;
}

/** Returns the calendar for a unit and a `start` such as `15 09:00`. */
export function calendarFor(
  unit: Calendar["unit"],
  timeZone: string,
  start: string = STARTS[unit][0],
): Calendar {
  const parts = parseCalendarStart(start);
  if (!parts) throw new Error(`not a start: ${start}`);
  return calendarOf(unit, timeZone, parts);
}

/** Generates `count` random calendars and times, in every zone of {@link ZONES} in turn. */
export function calendarCases(count: number, seed = 1): CalendarCase[] {
  const random = randomOf(seed);
  const timeIn = randomTimes(random, Date.UTC(1973, 0), Date.UTC(2040, 0));
  return Array.from({ length: count }, (_, index) => {
    const zone = ZONES[index % ZONES.length] as string;
    return { calendar: randomCalendar(zone, random), now: timeIn(zone) };
  });
}

/** Random calendars of all zones at one random time. */
export interface CalendarMoment {
  readonly now: number;
  readonly calendars: readonly Calendar[];
}

/**
 * Generates random times, each with a random calendar in every zone of {@link ZONES}. The times are
 * in the future, because a store may remove rows of the past.
 */
export function calendarMoments(count: number, seed = 1): CalendarMoment[] {
  const random = randomOf(seed);
  const timeIn = randomTimes(random, Date.now() + 2 * 24 * HOUR, Date.now() + 5000 * 24 * HOUR);
  return Array.from({ length: count }, (_, index) => ({
    now: timeIn(ZONES[index % ZONES.length] as string),
    calendars: ZONES.map((zone) => randomCalendar(zone, random)),
  }));
}

type Random = ReturnType<typeof randomOf>;

function pick<T>(list: readonly T[], random: Random): T {
  return list[random(list.length)] as T;
}

function randomCalendar(zone: string, random: Random): Calendar {
  const unit = pick(UNITS, random);
  return calendarFor(unit, zone, pick<string>(STARTS[unit], random));
}

/**
 * Returns a function that generates times. Half of them are within two days of a change of a zone's
 * clocks, and many are at a whole hour or a millisecond before.
 */
function randomTimes(random: Random, from: number, to: number): (zone: string) => number {
  const changes = new Map<string, readonly number[]>();
  return (zone) => {
    const near = changes.get(zone) ?? clockChanges(zone, from, to);
    changes.set(zone, near);
    const base =
      near.length > 0 && random(2) === 0
        ? pick(near, random) + (random(97) - 48) * HOUR
        : from + random(2 ** 22) * ((to - from) / 2 ** 22);
    const isWhole = random(3) > 0;
    return isWhole ? Math.floor(base / HOUR) * HOUR - random(2) : Math.floor(base) + random(HOUR);
  };
}
