import { tzOffset } from "@date-fns/tz/tzOffset";

/**
 * Whether a text is the name of a time zone that this runtime knows. An offset such as `+01:00` is
 * not accepted, because an offset has no summer time.
 */
export function isTimeZone(text: string): boolean {
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

/** Returns the time of a zone's clocks minus UTC, in milliseconds. */
export function offsetAt(timeZone: string, time: number): number {
  // `tzOffset` returns minutes, with a fraction if an old offset of the zone has seconds.
  return timeZone === "UTC"
    ? 0
    : Math.round(tzOffset(timeZone, time as unknown as Date) * 60) * 1000;
}
