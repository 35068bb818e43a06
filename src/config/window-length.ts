import { CALENDAR_UNITS, type CalendarUnit, isCalendarUnit } from "./calendar.ts";
import { DURATION, type DurationInput, parseDuration } from "./duration.ts";
import { faultText } from "./fault-text.ts";
import { parsed } from "./fields.ts";

/**
 * The length of a window: a fixed length, such as `"1h"`, or a unit of the calendar.
 *
 * @example "10s", "1h", "1d", 90, "day", "month"
 */
export type WindowInput = DurationInput | CalendarUnit;

/** A parsed length of a window: seconds, or a unit of the calendar. */
export type WindowLength = number | CalendarUnit;

/** Whether a value is a parsed length of a window. */
export function isWindowLength(value: unknown): value is WindowLength {
  return typeof value === "number" || isCalendarUnit(value);
}

/** The units of the calendar, for messages. */
export const UNITS = faultText(() => CALENDAR_UNITS.map((unit) => JSON.stringify(unit)).join(", "));

/** The schema of the length of a window. */
export const WindowLengthSchema = parsed<WindowInput, WindowLength>(
  (value) => (isCalendarUnit(value) ? value : parseDuration(value)),
  faultText(() => `${DURATION}; or ${UNITS} of the calendar`),
);
