import { localTimeAt } from "./time-zone.ts";

/** The units of calendar windows. */
export const CALENDAR_UNITS = ["day", "week", "month", "year"] as const;

export type CalendarUnit = (typeof CALENDAR_UNITS)[number];

const MINUTE_MS = 60_000;
export const DAY_MS = 86_400_000;

/**
 * The length of each unit in milliseconds, without changes of the clocks. For months and years,
 * this is the length of the longest month and year.
 */
const UNIT_MS: Readonly<Record<CalendarUnit, number>> = {
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 31 * DAY_MS,
  year: 366 * DAY_MS,
};

/**
 * When a window begins within its unit. Each unit uses only some of the fields: days use only
 * `timeMs`.
 */
export interface CalendarStart {
  /** The month of a year, 1 to 12. */
  readonly month: number;
  /** The day of a month, 1 to 31. In a shorter month it stands for the last day. */
  readonly day: number;
  /** The day of a week, 1 (Monday) to 7. */
  readonly weekday: number;
  /** The time of the day in milliseconds, as clocks show it. */
  readonly timeMs: number;
}

/**
 * The windows of a calendar: local days, weeks, months or years. It contains only plain data,
 * because the Worker sends it to Durable Objects.
 */
export interface Calendar extends CalendarStart {
  /** A text that is different for every calendar: `month Europe/Berlin 15 09:00`. */
  readonly id: string;
  readonly unit: CalendarUnit;
  /** The IANA name of the time zone. */
  readonly timeZone: string;
}

export function isCalendarUnit(value: unknown): value is CalendarUnit {
  return CALENDAR_UNITS.includes(value as CalendarUnit);
}

/**
 * Returns the length of a calendar's windows in milliseconds, without changes of the clocks. Months
 * have 31 days and years have 366.
 */
export function unitLengthMs(unit: CalendarUnit): number {
  return UNIT_MS[unit];
}

/** Returns the calendar of a window. */
export function calendarOf(
  unit: CalendarUnit,
  timeZone: string,
  { month = 1, day = 1, weekday = 1, timeMs = 0 }: Partial<CalendarStart>,
): Calendar {
  const time = new Date(timeMs).toISOString().slice(11, timeMs % MINUTE_MS === 0 ? 16 : 19);
  const date = {
    day: "",
    week: `${WEEKDAYS[weekday - 1]} `,
    month: `${day} `,
    year: `${twoDigits(month)}-${twoDigits(day)} `,
  };
  const id = `${unit} ${timeZone} ${date[unit]}${time}`;
  return { id, unit, timeZone, month, day, weekday, timeMs };
}

const WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

function twoDigits(number: number): string {
  return String(number).padStart(2, "0");
}

/** The parts of `start` that concern calendar windows: `15 09:00`, `monday`, `04-06` or `09:00`. */
const START = /^(?=.)(?:(?:(\d\d)-)?(\d\d?)|([a-z]+))?(?:(?:^| )([01]\d|2[0-3]):([0-5]\d))?$/;

/**
 * Parses a `start` of calendar windows.
 *
 * @returns the given parts; undefined for anything else, and for a date that no year has
 */
export function parseCalendarStart(text: string): Partial<CalendarStart> | undefined {
  const [match, month, day, weekdayName, hours, minutes] = START.exec(text) ?? [];
  if (match === undefined) return undefined;
  const weekday = weekdayName ? WEEKDAYS.indexOf(weekdayName) + 1 : undefined;
  // The date must exist in the year 2000, which is a leap year. If no month is given, the day must
  // exist in January.
  const date = day && new Date(Date.UTC(2000, Number(month ?? 1) - 1, Number(day)));
  const isDate = !date || (date.getUTCDate() === Number(day) && Number(month ?? 1) <= 12);
  if (weekday === 0 || !isDate || month === "00") return undefined;
  return {
    ...(month && { month: Number(month) }),
    ...(day && { day: Number(day) }),
    ...(weekday && { weekday }),
    ...(hours && { timeMs: (Number(hours) * 60 + Number(minutes)) * MINUTE_MS }),
  };
}

/** Returns the date and time that the clocks of a zone show, to the second. */
export function calendarStartAt(timeZone: string, time: number): CalendarStart {
  const local = localTimeAt(timeZone, Math.floor(time / 1000) * 1000);
  const date = new Date(local);
  return {
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
    weekday: date.getUTCDay() || 7,
    timeMs: local - Math.floor(local / DAY_MS) * DAY_MS,
  };
}
