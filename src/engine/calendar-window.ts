import { type Calendar, DAY_MS, localTimeAt, offsetAt, unitLengthMs } from "../config/calendar.ts";

// Calendar windows. A window begins when the clocks of its time zone first show its start or a later time:
//
// - If the clocks skip the start, the window begins when they skip it.
// - If the clocks show the start twice, the window begins the first time.
//
// So every window begins once, and the windows follow one another without gaps. If the clocks skip a window as a
// whole, the window is empty: in Samoa there was no 30 December 2011.
//
// The number of a window counts local days, weeks, months or years since 1970. So a change of a time zone's rules
// does not change the numbers.

/** A window, with its number and its bounds in milliseconds since the Unix epoch. */
export interface WindowBounds {
  readonly index: number;
  readonly startsAt: number;
  readonly endsAt: number;
}

/**
 * The latest time for which windows follow the calendar: about the year 5100. Reservations can go beyond this time.
 * All later windows have the longest length of their unit.
 */
const MAX_TIME = 1e14;

/** The maximum number of cached calendars. All calendars come from the configuration. */
const MAX_CALENDARS = 4096;

/** The maximum number of cached starts for each calendar. */
const MAX_STARTS = 256;

/** The last returned window, and the computed starts of windows by their numbers. */
interface CachedCalendar {
  last: WindowBounds | undefined;
  readonly starts: Map<number, number>;
}

/** The computed windows of this isolate by the `id` of their calendar. */
const cache = new Map<string, CachedCalendar>();

/** Returns the window that contains a time. */
export function calendarWindowAt(calendar: Calendar, now: number): WindowBounds {
  const cached = cachedFor(calendar);
  const { last } = cached;
  if (last && last.startsAt <= now && now < last.endsAt) return last;
  let index = estimatedIndex(calendar, now);
  while (calendarWindowStart(calendar, index) > now) index -= 1;
  while (calendarWindowStart(calendar, index + 1) <= now) index += 1;
  cached.last = {
    index,
    startsAt: calendarWindowStart(calendar, index),
    endsAt: calendarWindowStart(calendar, index + 1),
  };
  return cached.last;
}

/** Returns the time at which a window begins and the previous window ends. */
export function calendarWindowStart(calendar: Calendar, index: number): number {
  const length = unitLengthMs(calendar.unit);
  const lastIndex = Math.floor(MAX_TIME / length);
  if (index > lastIndex) {
    return calendarWindowStart(calendar, lastIndex) + (index - lastIndex) * length;
  }
  const { starts } = cachedFor(calendar);
  const cached = starts.get(index);
  if (cached !== undefined) return cached;
  const start = firstTimeAt(calendar.timeZone, localStartOf(calendar, index));
  if (starts.size >= MAX_STARTS) starts.clear();
  starts.set(index, start);
  return start;
}

function cachedFor({ id }: Calendar): CachedCalendar {
  const cached = cache.get(id);
  if (cached) return cached;
  if (cache.size >= MAX_CALENDARS) cache.clear();
  const empty: CachedCalendar = { last: undefined, starts: new Map() };
  cache.set(id, empty);
  return empty;
}

/** Returns the number of the window that contains a time, with an error of at most 1. */
function estimatedIndex(calendar: Calendar, now: number): number {
  const { unit, timeZone } = calendar;
  if (now > MAX_TIME) {
    const index = Math.floor(MAX_TIME / unitLengthMs(unit));
    const past = now - calendarWindowStart(calendar, index);
    return index + Math.floor(past / unitLengthMs(unit));
  }
  const local = localTimeAt(timeZone, now);
  if (unit === "day" || unit === "week") {
    return Math.floor((local - localStartOf(calendar, 0)) / unitLengthMs(unit));
  }
  const date = new Date(local);
  const years = date.getUTCFullYear() - 1970;
  return unit === "year" ? years : years * 12 + date.getUTCMonth();
}

/** Returns the time that the clocks of the time zone show at the start of a window. */
function localStartOf({ unit, month, day, weekday, timeMs }: Calendar, index: number): number {
  if (unit === "day") return index * DAY_MS + timeMs;
  // 1 January 1970 was a Thursday. So the week with the number 0 began three days earlier.
  if (unit === "week") return (index * 7 + weekday - 4) * DAY_MS + timeMs;
  const months = unit === "year" ? index * 12 + month - 1 : index;
  const lastDay = new Date(Date.UTC(1970, months + 1, 0)).getUTCDate();
  return Date.UTC(1970, months, Math.min(day, lastDay)) + timeMs;
}

/** Returns the first instant whose local time in a zone is `local` or later. The clocks may skip `local`. */
function firstTimeAt(timeZone: string, local: number): number {
  // The clocks of a zone change at most once in these two days.
  const before = offsetAt(timeZone, local - DAY_MS);
  const after = offsetAt(timeZone, local + DAY_MS);
  const [earlier, later] = [local - Math.max(before, after), local - Math.min(before, after)];
  if (localTimeAt(timeZone, earlier) === local) return earlier;
  if (localTimeAt(timeZone, later) === local) return later;
  // Between these two times, the clocks skip `local`. Clocks change at a whole second.
  let [last, first] = [earlier, later];
  while (first - last > 1000) {
    const middle = last + Math.floor((first - last) / 2000) * 1000;
    if (localTimeAt(timeZone, middle) < local) last = middle;
    else first = middle;
  }
  return first;
}
