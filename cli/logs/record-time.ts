import { parseIsoTime } from "../../src/config/iso-time.ts";
import { AccessTime, clockAt } from "./access-time.ts";
import { ownText } from "./text-cache.ts";

/** A number with this size or more is in the finer unit: 10¹¹ seconds are 3,000 years, and 10¹¹ ms are 3 years. */
const MILLISECONDS_FROM = 1e11;
const MICROSECONDS_FROM = 1e14;
const NANOSECONDS_FROM = 1e17;

/** The last time that a `Date` can have. */
const MAX_MS = 8.64e15;

const NUMBER = /^\d{1,20}(?:\.\d{1,20})?$/;
const ISO =
  /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\d{0,20} ?(?:Z|([+-])(0\d|1[0-4]):?([0-5]\d))?$/i;

const accessTime = new AccessTime();

/** The last day in ISO 8601, because parsing days would take most of the time. */
let lastDay = "";
let lastDayMs = Number.NaN;

/**
 * Reads a time: a number of seconds, milliseconds, microseconds or nanoseconds since the Unix epoch, ISO 8601, or the
 * format of access logs. ISO 8601 without a zone is taken as UTC.
 *
 * @returns milliseconds since the Unix epoch; NaN if the value is no time
 */
export function recordTime(value: unknown): number {
  if (typeof value === "number") return inMilliseconds(value);
  if (typeof value !== "string") return Number.NaN;
  if (NUMBER.test(value)) return inMilliseconds(Number(value));
  const [, day, clock = "", fraction, sign, hours, minutes] = ISO.exec(value) ?? [];
  if (day === undefined) return accessTime.read(value, 0, value.length);
  if (day !== lastDay) {
    lastDay = ownText(day);
    lastDayMs = parseIsoTime(`${day}T00:00:00Z`);
  }
  const ms = fraction === undefined ? 0 : Number(fraction.padEnd(3, "0").slice(0, 3));
  const at = lastDayMs + clockAt(clock, 0) + ms;
  if (sign === undefined) return at;
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return sign === "-" ? at + offset : at - offset;
}

/** Whether a value is a time without a zone, which is taken as UTC. */
export function lacksZone(value: unknown): boolean {
  if (typeof value !== "string" || value.endsWith("Z") || value.endsWith("z")) return false;
  const match = ISO.exec(value);
  return match !== null && match[4] === undefined;
}

function inMilliseconds(value: number): number {
  if (!(value >= 0)) return Number.NaN;
  let ms = value * 1000;
  if (value >= NANOSECONDS_FROM) ms = value / 1e6;
  else if (value >= MICROSECONDS_FROM) ms = value / 1000;
  else if (value >= MILLISECONDS_FROM) ms = value;
  return ms <= MAX_MS ? ms : Number.NaN;
}
