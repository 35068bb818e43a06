import { Temporal } from "temporal-polyfill";
import type { Calendar } from "../../src/config/calendar.ts";

/** A window, with its number and its bounds in milliseconds since the Unix epoch. */
export interface ExpectedWindow {
  readonly index: number;
  readonly startsAt: number;
  readonly endsAt: number;
}

/**
 * Computes the window that contains a time with Temporal, independently of src/engine. The rule: a
 * window begins at the first moment at which the clocks show its start or a later time.
 */
export function expectedWindow(calendar: Calendar, now: number): ExpectedWindow {
  const local = Temporal.Instant.fromEpochMilliseconds(now)
    .toZonedDateTimeISO(calendar.timeZone)
    .toPlainDate();
  const estimate = Math.trunc(
    Temporal.PlainDate.from("1970-01-01").until(local, { largestUnit: calendar.unit })[
      `${calendar.unit}s`
    ],
  );
  // The estimate ignores the start of the windows and truncates times before 1970, so the window is
  // near it. Windows begin in order, and an empty window begins when the next one begins.
  let [index, startsAt] = [estimate, startOf(calendar, estimate)];
  while (startsAt > now) startsAt = startOf(calendar, --index);
  let endsAt = startOf(calendar, index + 1);
  while (endsAt <= now)
    [index, startsAt, endsAt] = [index + 1, endsAt, startOf(calendar, index + 2)];
  return { index, startsAt, endsAt };
}

/** The time at which the window with this number begins. */
export function startOf({ timeZone, timeMs, ...calendar }: Calendar, index: number): number {
  const time = Temporal.PlainTime.from("00:00").add({ milliseconds: timeMs });
  return firstInstantOf(dateOf(calendar, index).toPlainDateTime(time), timeZone);
}

function dateOf(
  { unit, month, day, weekday }: Omit<Calendar, "timeZone" | "timeMs">,
  index: number,
): Temporal.PlainDate {
  switch (unit) {
    case "day":
      return Temporal.PlainDate.from("1970-01-01").add({ days: index });
    case "week": {
      // The ISO week 1 of 1970 began on 29 December 1969.
      return Temporal.PlainDate.from("1969-12-29").add({ weeks: index, days: weekday - 1 });
    }
    case "month": {
      const { year, month } = Temporal.PlainYearMonth.from("1970-01").add({ months: index });
      return Temporal.PlainDate.from({ year, month, day }, { overflow: "constrain" });
    }
    default:
      return Temporal.PlainDate.from({ year: 1970 + index, month, day }, { overflow: "constrain" });
  }
}

function firstInstantOf(local: Temporal.PlainDateTime, timeZone: string): number {
  const earlier = local.toZonedDateTime(timeZone, { disambiguation: "earlier" });
  if (earlier.toPlainDateTime().equals(local)) return earlier.epochMilliseconds;
  // The clocks skip the local time, and `earlier` is before the gap.
  const change = earlier.getTimeZoneTransition("next");
  if (!change) throw new Error(`${local} does not exist in ${timeZone}`);
  return change.epochMilliseconds;
}

/** The times at which the clocks of a zone are changed, in milliseconds since the Unix epoch. */
export function clockChanges(timeZone: string, from: number, to: number): number[] {
  const changes: number[] = [];
  let at: Temporal.ZonedDateTime | null =
    Temporal.Instant.fromEpochMilliseconds(from).toZonedDateTimeISO(timeZone);
  for (;;) {
    at = at.getTimeZoneTransition("next");
    if (!at || at.epochMilliseconds >= to) return changes;
    changes.push(at.epochMilliseconds);
  }
}
