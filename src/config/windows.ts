import {
  type Calendar,
  type CalendarUnit,
  calendarOf,
  calendarStartAt,
  unitLengthMs,
} from "./calendar.ts";
import { formatDuration } from "./duration.ts";
import type { ParsedLimit, ParsedLimitFields } from "./limits.ts";
import type { Start } from "./start.ts";
import type { WindowLength } from "./window-length.ts";

/** One limit of a rule or of one of its tiers, with the windows that it applies to. */
export interface Window {
  /**
   * The name of the policy in the RateLimit fields: the name of the rule, or, if the rule has
   * several limits, the name with the window, such as `search/1m`.
   */
  readonly policy: string;
  /** How much quota each window adds. */
  readonly limit: number;
  /** The maximum quota that a client can have; equal to `limit` if no quota rolls over. */
  readonly capacity: number;
  /** The maximum quota of later windows that can be reserved. */
  readonly maxReserved: number;
  /**
   * The length of the window. For a calendar window, it is the longest possible length without
   * changes of the clocks.
   */
  readonly windowMs: number;
  /**
   * The time at which a window begins, in milliseconds after the Unix epoch, modulo `windowMs`. So
   * 0 ≤ offsetMs < windowMs. It is 0 for a calendar window.
   */
  readonly offsetMs: number;
  /** The calendar of the window, if its length is a unit of the calendar. */
  readonly calendar?: Calendar;
}

/** Returns the windows of a rule or of one of its tiers. @param name the name of the rule */
export function windowsOf(
  name: string,
  fields: ParsedLimitFields,
  start: Start,
  timeZone: string,
): Window[] {
  // If `limits` is not set, the schema has checked that `limit` and `window` are set.
  const all = fields.limits ?? [fields as ParsedLimit];
  return all.map(({ limit, window, capacity = limit, maxReserved = 0 }) => ({
    policy: all.length === 1 ? name : `${name}/${labelOf(window)}`,
    limit,
    capacity,
    maxReserved,
    ...(typeof window === "number"
      ? { windowMs: window * 1000, offsetMs: floorMod(start.startMs, window * 1000) }
      : calendarWindowOf(window, start, timeZone)),
  }));
}

function labelOf(window: WindowLength): string {
  return typeof window === "number" ? formatDuration(window) : window;
}

function calendarWindowOf(
  unit: CalendarUnit,
  { startMs, isTime, parts = {} }: Start,
  zone: string,
) {
  const start = isTime ? calendarStartAt(zone, startMs) : parts;
  return { windowMs: unitLengthMs(unit), offsetMs: 0, calendar: calendarOf(unit, zone, start) };
}

/**
 * Formats the length of a window as in a configuration: `1m`, `90s`, `month`. Stored keys and the
 * names of policies contain this text.
 */
export function formatWindow({
  windowMs,
  calendar,
}: Pick<Window, "windowMs" | "calendar">): string {
  return calendar?.unit ?? formatDuration(windowMs / 1000);
}

/** Returns a remainder that is never negative, even for starts before 1970. */
function floorMod(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
