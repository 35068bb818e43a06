import {
  CALENDAR_UNITS,
  type CalendarUnit,
  isCalendarUnit,
  parseCalendarStart,
} from "../calendar.ts";
import { isRecord } from "../fields.ts";

/**
 * Suggests a time with its zone, or the start of a calendar window.
 *
 * @param units the units of the rule's calendar windows
 */
export function startHint(given: unknown, units: readonly CalendarUnit[]): string | undefined {
  const start = calendarStart(given) ?? startOfDate(given, units);
  if (start !== undefined) return `write ${JSON.stringify(start)}`;
  if (units.length > 0 && typeof given === "string") {
    const range = rangeHint(given.trim());
    if (range) return range;
  }
  const isDate = given instanceof Date;
  if (typeof given !== "string" && typeof given !== "number" && !isDate) return undefined;
  const isNumber = typeof given === "number" || /^\d{10}(\d{3})?$/.test(String(given));
  const seconds = Number(given);
  const time = isNumber
    ? new Date(seconds > 1e11 ? seconds : seconds * 1000)
    : isDate
      ? given
      : withZone(given);
  if (!time || Number.isNaN(time.getTime()) || (isNumber && seconds < 1e9)) return undefined;
  return `write ${JSON.stringify(time.toISOString().replace(".000Z", "Z"))}`;
}

/** Returns the start of calendar windows that a value can mean: `15 09:00` for `{ day: 15, time: "9:00" }`. */
function calendarStart(given: unknown): string | undefined {
  if (typeof given === "number") return given >= 1 && given <= 31 ? String(given) : undefined;
  const parts = isRecord(given) ? START_PARTS.map((names) => partOf(given, names)) : [given];
  const text = parts
    .filter((part) => typeof part === "string" || typeof part === "number")
    .join(" ")
    .trim()
    .toLowerCase()
    .replace(/\b(\d\d?)(st|nd|rd|th)\b/, "$1")
    .replace(/\b(?=\d:\d\d\b)/, "0")
    .replace(/^(sun|mon|tue|wed|thu|fri|sat)(?![a-z]*day)[a-z]*/, (_, day) => DAYS[day] ?? day)
    .replace(
      /^(\d\d?) (\d\d?)(?![\d:])/,
      (_, month, day) => `${month.padStart(2, "0")}-${day.padStart(2, "0")}`,
    );
  return parseCalendarStart(text) && text !== given ? text : undefined;
}

/** Suggests a start for a day or a date that no calendar has, such as `32` and `31-12`. */
function rangeHint(given: string): string | undefined {
  if (/^\d\d?$/.test(given)) return "write a day from 1 to 31";
  const [, month, day] = /^(\d\d)-(\d\d)\b/.exec(given) ?? [];
  if (month === undefined) return undefined;
  const swapped = `${day}-${month}`;
  return parseCalendarStart(swapped)
    ? `write "${swapped}", with the month before the day`
    : "write a date that exists, with the month before the day";
}

const START_PARTS = [["month"], ["day", "date", "weekday"], ["time", "hour", "at"]];
const DAYS: Readonly<Record<string, string>> = {
  mon: "monday",
  tue: "tuesday",
  wed: "wednesday",
  thu: "thursday",
  fri: "friday",
  sat: "saturday",
  sun: "sunday",
};

function partOf(given: Readonly<Record<string, unknown>>, names: readonly string[]): unknown {
  return names.map((name) => given[name]).find((part) => part !== undefined);
}

/**
 * Returns the start of calendar windows for a date without a zone: `04-06` for 2026-04-06 and a year. A
 * time in UTC would be another local time, and the year of the date has no meaning.
 */
function startOfDate(given: unknown, units: readonly CalendarUnit[]): string | undefined {
  const date = typeof given === "string" && !given.trim().endsWith("Z") && withZone(given);
  if (!date || units.length === 0) return undefined;
  const [, month = "", day = "", time = ""] =
    /^\d{4}-(\d\d)-(\d\d)T(\d\d:\d\d)/.exec(date.toISOString()) ?? [];
  const weekday = Object.values(DAYS)[(date.getUTCDay() + 6) % 7];
  const starts = { year: `${month}-${day}`, month: String(Number(day)), week: weekday, day: "" };
  const unit = UNITS.find((each) => units.includes(each)) ?? "day";
  return (time === "00:00" && unit !== "day" ? starts[unit] : `${starts[unit]} ${time}`)?.trim();
}

/** The units from the longest to the shortest. The start has the parts of the longest one. */
const UNITS: readonly CalendarUnit[] = CALENDAR_UNITS.toReversed();

/** Returns the units of the calendar windows of a rule and its tiers, as the user wrote them. */
export function unitsIn(fields: unknown): readonly CalendarUnit[] {
  if (!isRecord(fields)) return [];
  const { window, limits, tiers } = fields;
  const ofTiers = isRecord(tiers) && isRecord(tiers.limits) ? Object.values(tiers.limits) : [];
  const elements = [Array.isArray(limits) ? limits : [], ofTiers].flat();
  return [window, ...elements.flatMap(unitsIn)].filter(isCalendarUnit);
}

function withZone(given: unknown): Date | undefined {
  const [, day, time = "00:00:00"] =
    /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?Z?$/.exec(String(given).trim()) ?? [];
  const date = new Date(`${day}T${time}Z`);
  // Date reads 30 February as 2 March.
  return day && !Number.isNaN(date.getTime()) && date.toISOString().startsWith(day)
    ? date
    : undefined;
}
