import { parseIsoTime } from "../../src/config/iso-time.ts";

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** The length of `17/May/2015:10:05:03 +0000`. */
const USUAL_LENGTH = 26;
const DAY_LENGTH = 12;
const CLOCK_LENGTH = 8;

const DAY = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4})[: ]$/;
const ZONE = /^ ([+-])(0\d|1[0-4]):?([0-5]\d)$/;
const SLASHED = /^(.{12})(\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?( [+-]\d\d:?\d\d)$/;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/**
 * Reads the times of access logs. Remembers the last day and the last zone, because parsing dates would take
 * most of the time of a line.
 */
export class AccessTime {
  // No line has these texts. An empty text would be a part of every line.
  #day = "\n";
  #dayMs = Number.NaN;
  #zone = "\n";
  #zoneMs = Number.NaN;

  /**
   * Reads a time such as `17/May/2015:10:05:03 +0000`. Fractions of a second and ISO 8601 are accepted too.
   *
   * @param from the index of the time's first character
   * @param to the index after its last character
   * @returns milliseconds since the Unix epoch; NaN if there is no such time
   */
  read(line: string, from: number, to: number): number {
    if (to - from !== USUAL_LENGTH) return this.#readUnusual(line.slice(from, to));
    if (!line.startsWith(this.#day, from)) this.#readDay(line.slice(from, from + DAY_LENGTH));
    const zoneAt = from + DAY_LENGTH + CLOCK_LENGTH;
    if (!line.startsWith(this.#zone, zoneAt)) this.#readZone(line.slice(zoneAt, to));
    const clockMs = clockAt(line, from + DAY_LENGTH);
    const at = this.#dayMs + clockMs - this.#zoneMs;
    return Number.isNaN(at) ? this.#readUnusual(line.slice(from, to)) : at;
  }

  #readUnusual(text: string): number {
    if (ISO.test(text)) return parseIsoTime(text);
    const [, day = "", clock = "", fraction = "0", zone = ""] = SLASHED.exec(text) ?? [];
    const fractionMs = Math.floor(Number(`0.${fraction}`) * 1000);
    return dayStart(day) + clockAt(clock, 0) + fractionMs - zoneOffset(zone);
  }

  #readDay(text: string): void {
    this.#day = text;
    this.#dayMs = dayStart(text);
  }

  #readZone(text: string): void {
    this.#zone = text;
    this.#zoneMs = zoneOffset(text);
  }
}

/** Returns the start of a day in UTC, such as of `17/May/2015:`; NaN if there is no such day. */
function dayStart(text: string): number {
  const [, day = "", name = "", year = ""] = DAY.exec(text) ?? [];
  const month = MONTHS.indexOf(name);
  const start = Date.UTC(Number(year), month, Number(day));
  const date = new Date(start);
  // The years 0 to 99 would become 1900 to 1999.
  const isDay = date.getUTCDate() === Number(day) && date.getUTCFullYear() === Number(year);
  return month !== -1 && isDay ? start : Number.NaN;
}

/** Returns the offset of a zone such as ` +0530`, in milliseconds; NaN if the text is no zone. */
function zoneOffset(text: string): number {
  const [, sign, hours, minutes] = ZONE.exec(text) ?? [];
  const ms = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return sign === "-" ? -ms : ms;
}

/** Returns the milliseconds from midnight to a time such as `10:05:03`; NaN if there is no such time. */
export function clockAt(line: string, from: number): number {
  const hours = twoDigitsAt(line, from);
  const minutes = twoDigitsAt(line, from + 3);
  const seconds = twoDigitsAt(line, from + 6);
  const isClock = line.charCodeAt(from + 2) === 58 && line.charCodeAt(from + 5) === 58;
  // A leap second is 60, at the end of an hour in UTC. Zones differ from UTC by quarters of an hour.
  const maxSeconds = minutes % 15 === 14 ? 60 : 59;
  if (!isClock || hours > 23 || minutes > 59 || seconds > maxSeconds) return Number.NaN;
  return ((hours * 60 + minutes) * 60 + seconds) * 1000;
}

function twoDigitsAt(line: string, index: number): number {
  const tens = line.charCodeAt(index) - 48;
  const ones = line.charCodeAt(index + 1) - 48;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}
