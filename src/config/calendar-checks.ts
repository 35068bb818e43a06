import { type CalendarUnit, isCalendarUnit } from "./calendar.ts";
import { faultText } from "./fault-text.ts";
import { checkOf } from "./field-checks.ts";
import { isRecord } from "./fields.ts";
import type { Start } from "./start.ts";
import { isWindowLength, UNITS } from "./window-length.ts";

/**
 * Checks that `timeZone` and `start` fit the windows of the rule and its tiers. The field `timeZone`
 * and each part of a `start` such as `15 09:00` would have no effect without a window that uses it.
 */
export function checkCalendar<Output>() {
  return checkOf<Output>(({ start, timeZone, limits, window, tiers }, refuse) => {
    const ofTiers =
      isRecord(tiers) && tiers.limits instanceof Map ? [...tiers.limits.values()] : [];
    const windows = [{ limits, window }, ...ofTiers].flatMap(windowsIn);
    // If a window has a fault, it is unknown which windows the rule has.
    if (!windows.every(isWindowLength)) return;
    const units = windows.filter(isCalendarUnit);
    if (timeZone !== undefined && units.length === 0) {
      refuse(
        faultText(() => `remove timeZone, or write a window of the calendar: ${UNITS}`),
        "timeZone",
      );
    }
    if (isStart(start)) checkStart(start, units, (message) => refuse(message, "start"));
  });
}

/** Returns the given windows of a rule or tier, parsed or not. */
function windowsIn(fields: unknown): unknown[] {
  if (!isRecord(fields)) return [];
  const elements: unknown[] = Array.isArray(fields.limits) ? fields.limits : [fields];
  return elements.flatMap((each) => (isRecord(each) ? (each.window ?? []) : [])) as unknown[];
}

/** Whether `start` has no fault, and is parsed. */
function isStart(start: unknown): start is Start {
  return isRecord(start) && "startMs" in start;
}

/** Reports the first fault of a start for windows with these units. */
function checkStart(
  { spread, parts }: Start,
  units: readonly CalendarUnit[],
  refuse: (message: string) => void,
): void {
  const lacks = (...needed: CalendarUnit[]) => !needed.some((unit) => units.includes(unit));
  if (spread && units.length > 0) {
    refuse(
      faultText(
        'remove "spread": a window of the calendar begins at the same time for all clients',
      ),
    );
  } else if (parts && units.length === 0) {
    refuse(
      faultText(
        () =>
          `write a time with its zone, such as "2026-01-05T09:00:00Z": only a window of the calendar (${UNITS}) begins at such a start`,
      ),
    );
  } else if (parts?.month && lacks("year")) {
    refuse(faultText('write the start without a month: only a window "year" begins in a month'));
  } else if (parts?.day && lacks("month", "year")) {
    refuse(
      faultText(
        'write the start without a day of the month: only a window "month" or "year" begins on one',
      ),
    );
  } else if (parts?.day && !parts.month && lacks("month")) {
    refuse(faultText('write the month before the day, such as "04-06" for 6 April'));
  } else if (parts?.weekday && lacks("week")) {
    refuse(
      faultText('write the start without a day of the week: only a window "week" begins on one'),
    );
  }
}
