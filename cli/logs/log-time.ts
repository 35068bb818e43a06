import { parseIsoTime } from "../../src/config/calendar.ts";

/** From each number on, a time is in the unit of its name: 10¹¹ seconds are 3,000 years, but 10¹¹ ms are 3. */
const MILLISECONDS_FROM = 1e11;
const MICROSECONDS_FROM = 1e14;
const NANOSECONDS_FROM = 1e17;

/** The last time that a `Date` can have. */
const MAX_MS = 8.64e15;

const NUMBER = /^\d{1,20}(?:\.\d{1,20})?$/;
const MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec";
const ACCESS = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4})[: ](\S+ [+-]\d\d:?\d\d)$/;
const ISO =
  /^([12]\d{3}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,3})\d*)? ?(?:Z|([+-](?:0\d|1[0-4])):?([0-5]\d))?$/i;

/**
 * Reads a time: a number of seconds, milliseconds, microseconds or nanoseconds since the Unix epoch, ISO 8601, or the
 * format of access logs, such as `17/May/2015:10:05:03 +0000`. ISO 8601 without a zone is taken as UTC.
 *
 * @returns milliseconds since the Unix epoch; NaN if the value is no time
 */
export function parseLogTime(value: unknown): number {
  if (typeof value === "number") return inMilliseconds(value);
  if (typeof value !== "string") return Number.NaN;
  if (NUMBER.test(value)) return inMilliseconds(Number(value));
  const iso = value.replace(ACCESS, (_, day, month, year, rest) => {
    const number = MONTHS.indexOf(month) / 3 + 1;
    return `${year}-${String(number).padStart(2, "0")}-${day}T${rest}`;
  });
  const [, day, clock, fraction = "0", hours = "+00", minutes = "00"] = ISO.exec(iso) ?? [];
  return parseIsoTime(`${day}T${clock}.${fraction}${hours}:${minutes}`);
}

function inMilliseconds(value: number): number {
  if (!(value >= 0)) return Number.NaN;
  let ms = value * 1000;
  if (value >= NANOSECONDS_FROM) ms = value / 1e6;
  else if (value >= MICROSECONDS_FROM) ms = value / 1000;
  else if (value >= MILLISECONDS_FROM) ms = value;
  return ms <= MAX_MS ? ms : Number.NaN;
}
