import { tzOffset } from "@date-fns/tz/tzOffset";
import { faultText } from "./faults.ts";
import { parsedText } from "./fields.ts";

/**
 * Whether a text is the name of a time zone that this runtime knows. False for an offset such as `+01:00`, because an
 * offset has no summer time.
 */
function isTimeZone(text: string): boolean {
  if (!/^[A-Za-z][\w+/-]{0,63}$/.test(text)) return false;
  try {
    new Intl.DateTimeFormat("en", { timeZone: text });
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns the local time of a time zone, in milliseconds since 1970-01-01T00:00 in local time.
 *
 * @param time milliseconds since the Unix epoch, before the year 275760
 */
export function localTimeAt(timeZone: string, time: number): number {
  return time + offsetAt(timeZone, time);
}

/** Returns the offset of a zone's clocks from UTC, in milliseconds. */
export function offsetAt(timeZone: string, time: number): number {
  // `tzOffset` returns minutes, with a fraction if an old offset of the zone has seconds.
  return timeZone === "UTC"
    ? 0
    : Math.round(tzOffset(timeZone, time as unknown as Date) * 60) * 1000;
}

/** The units of calendar windows. */
export const CALENDAR_UNITS = ["day", "week", "month", "year"] as const;

export type CalendarUnit = (typeof CALENDAR_UNITS)[number];

const MINUTE_MS = 60_000;
export const DAY_MS = 86_400_000;

/**
 * The length of each unit in milliseconds, without changes of the clocks: for months and years, the length of the
 * longest month and of the longest year.
 */
const UNIT_MS: Readonly<Record<CalendarUnit, number>> = {
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 31 * DAY_MS,
  year: 366 * DAY_MS,
};

/** The start of a window within its unit. Each unit uses only some of the fields: days use only `timeMs`. */
interface CalendarStart {
  /** The month of a year, 1 to 12. */
  readonly month: number;
  /** The day of a month, 1 to 31. In a shorter month, the last day. */
  readonly day: number;
  /** The day of a week, 1 (Monday) to 7. */
  readonly weekday: number;
  /** The time of the day in milliseconds, as clocks show it. */
  readonly timeMs: number;
}

/**
 * The windows of a calendar: local days, weeks, months or years. Contains only plain data, because the Worker sends
 * it to Durable Objects.
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
 * Returns the length of a calendar's windows in milliseconds, without changes of the clocks. A month has 31 days, and
 * a year has 366 days.
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

/** Matches the `start` of calendar windows: `15 09:00`, `monday`, `04-06` or `09:00`. */
const START = /^(?=.)(?:(?:(\d\d)-)?(\d\d?)|([a-z]+))?(?:(?:^| )([01]\d|2[0-3]):([0-5]\d))?$/;

/**
 * Parses a `start` of calendar windows.
 *
 * @returns the given parts; undefined for any other text, and for a date that no year has
 */
export function parseCalendarStart(text: string): Partial<CalendarStart> | undefined {
  const [match, month, day, weekdayName, hours, minutes] = START.exec(text) ?? [];
  if (match === undefined) return undefined;
  const weekday = weekdayName ? WEEKDAYS.indexOf(weekdayName) + 1 : undefined;
  // The date must exist in the leap year 2000. Without a month, the day must exist in January.
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

/**
 * Reads a time with its zone, such as `2026-12-01T08:00:00Z`. `Date.parse` alone would read the 30th of February as
 * the 2nd of March.
 *
 * @returns milliseconds since the Unix epoch; NaN if this time does not exist
 */
export function parseIsoTime(text: string): number {
  const day = text.slice(0, 10);
  const midnight = Date.parse(`${day}T00:00:00Z`);
  if (Number.isNaN(midnight) || !new Date(midnight).toISOString().startsWith(day))
    return Number.NaN;
  return Date.parse(text);
}

const START_TEXT = faultText(
  '"epoch", or a time with its zone, such as "2026-01-01T09:00:00-08:00", or "spread"; for windows of the calendar also "15 09:00", "monday", "04-06" or "09:00"',
);
export const TIME_ZONE = faultText(
  'the IANA name of a time zone, such as "Europe/Berlin" or "UTC"',
);

/** The start of windows: a time for all clients, or a time derived from each client's key. */
export interface Start {
  readonly spread: boolean;
  /** A time at which a window of a fixed length begins, in milliseconds after the Unix epoch. */
  readonly startMs: number;
  /** Whether `start` is a time with its zone. Calendar windows then begin at the local time of `startMs`. */
  readonly isTime?: true;
  /** Present if `start` is in a notation for calendar windows only, such as `15 09:00`. */
  readonly parts?: Partial<CalendarStart>;
}

/** The start of windows, and the time zone of calendar windows. */
export interface ZonedStart extends Start {
  readonly timeZone: string;
}

/** Returns the calendar of a rule's window. */
export function calendarFrom(
  unit: CalendarUnit,
  { startMs, isTime, parts = {}, timeZone }: ZonedStart,
): Calendar {
  return calendarOf(unit, timeZone, isTime ? calendarStartAt(timeZone, startMs) : parts);
}

/** The schema of a rule's `start`. */
export const StartSchema = parsedText(parseStart, START_TEXT);

/** The schema of a rule's `timeZone`. */
export const TimeZone = parsedText((text) => (isTimeZone(text) ? text : undefined), TIME_ZONE);

function parseStart(text: string): Start | undefined {
  if (text === "spread") return { spread: true, startMs: 0 };
  if (text === "epoch") return { spread: false, startMs: 0 };
  const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(text);
  if (!iso) {
    const parts = parseCalendarStart(text);
    return parts && { spread: false, startMs: 0, parts };
  }
  const startMs = parseIsoTime(text);
  return Number.isNaN(startMs) ? undefined : { spread: false, startMs, isTime: true };
}
