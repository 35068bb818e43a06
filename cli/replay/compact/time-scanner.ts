import { AccessTime } from "../../logs/access-line.ts";

const ZERO = 48;
const COLON = 58;

/** The lengths of `17/May/2015:`, of `17/May/2015:10:05:03` and of `17/May/2015:10:05:03 +0000`. */
const DAY_LENGTH = 12;
const CLOCK_END = 20;
export const TIME_LENGTH = 26;

/** Reads times such as `17/May/2015:10:05:03 +0000` from bytes. Most have the day and the zone of the time before. */
export class TimeScanner {
  /** The last time that was read, in milliseconds since the Unix epoch. */
  at = 0;
  readonly #time = new AccessTime();
  /** The bytes of a time with the latest day and zone. */
  readonly #usual = new Uint8Array(TIME_LENGTH);
  /** The start of that day in that zone, in milliseconds since the Unix epoch. */
  #dayMs = Number.NaN;

  /**
   * Reads a time.
   *
   * @param from the index of its first byte
   * @returns whether it is in the usual form
   */
  read(bytes: Uint8Array, from: number): boolean {
    const clockMs = clockAt(bytes, from + DAY_LENGTH);
    if (clockMs === -1) return false;
    if (!this.#isUsualDay(bytes, from) && !this.#readDay(bytes, from, clockMs)) return false;
    this.at = this.#dayMs + clockMs;
    return true;
  }

  #isUsualDay(bytes: Uint8Array, from: number): boolean {
    const usual = this.#usual;
    for (let index = 0; index < DAY_LENGTH; index++) {
      if (bytes[from + index] !== usual[index]) return false;
    }
    for (let index = CLOCK_END; index < TIME_LENGTH; index++) {
      if (bytes[from + index] !== usual[index]) return false;
    }
    return true;
  }

  #readDay(bytes: Uint8Array, from: number, clockMs: number): boolean {
    const time = bytes.subarray(from, from + TIME_LENGTH);
    const at = this.#time.read(String.fromCharCode(...time), 0, TIME_LENGTH);
    if (Number.isNaN(at)) return false;
    this.#usual.set(time);
    this.#dayMs = at - clockMs;
    return true;
  }
}

/** Returns the milliseconds from midnight to a time such as `10:05:03`; -1 if there is no such time. */
function clockAt(bytes: Uint8Array, from: number): number {
  const hours = twoDigitsAt(bytes, from);
  const minutes = twoDigitsAt(bytes, from + 3);
  const seconds = twoDigitsAt(bytes, from + 6);
  if (bytes[from + 2] !== COLON || bytes[from + 5] !== COLON) return -1;
  if (hours === -1 || minutes === -1 || seconds === -1) return -1;
  // A leap second is 60.
  if (hours > 23 || minutes > 59 || seconds > 60) return -1;
  return ((hours * 60 + minutes) * 60 + seconds) * 1000;
}

function twoDigitsAt(bytes: Uint8Array, index: number): number {
  const tens = (bytes[index] as number) - ZERO;
  const ones = (bytes[index + 1] as number) - ZERO;
  return isDigit(tens) && isDigit(ones) ? tens * 10 + ones : -1;
}

/** Whether the difference of a byte to the digit 0 is that of a digit. */
export function isDigit(value: number): boolean {
  return value >= 0 && value <= 9;
}
