import * as v from "valibot";
import { type CalendarStart, parseCalendarStart } from "./calendar.ts";
import { faultText } from "./fault-text.ts";
import { parsedText } from "./fields.ts";
import type { TextLike } from "./text-like.ts";
import { isTimeZone } from "./time-zone.ts";

const START = faultText(
  '"epoch", or a time with its zone, such as "2026-01-01T09:00:00-08:00", or "spread"; for windows of the calendar also "15 09:00", "monday", "04-06" or "09:00"',
);
const TIME_ZONE = faultText('the IANA name of a time zone, such as "Europe/Berlin" or "UTC"');

/** The fields of a rule that determine when its windows begin. */
export interface StartFields {
  /**
   * When windows begin. `"epoch"`: windows begin at multiples of their length after the Unix epoch, and
   * windows of the calendar begin at midnight on Mondays, on the first day of a month, or on 1 January.
   * A time with its zone: one of the windows begins at this time; windows of the calendar begin on
   * the same day and at the same local time. `"spread"`: windows begin at a different time for each
   * client, so that clients do not all retry at the same moment.
   *
   * Windows of the calendar can also begin at a local time (`"09:00"`), on a day of the month (`"15"`,
   * `"15 09:00"`), a day of the week (`"sunday"`, `"sunday 18:00"`), or a day of the year (`"04-06"`,
   * `"04-06 09:00"`: 6 April). In a month that has no such day, the window begins on the last day.
   *
   * @default "epoch"
   * @example "2026-01-01T09:00:00-08:00"
   */
  readonly start?:
    | TextLike<
        "epoch" | "spread" | "2026-01-01T00:00:00Z" | "15 09:00" | "monday" | "04-06" | "09:00"
      >
    | undefined;
  /**
   * The time zone of the windows `"day"`, `"week"`, `"month"` and `"year"`: its IANA name. Other
   * windows have no time zone, so the field needs such a window.
   *
   * @default "UTC"
   * @example "Europe/Berlin"
   */
  readonly timeZone?:
    | TextLike<"UTC" | "Europe/Berlin" | "America/New_York" | "Asia/Tokyo">
    | undefined;
}

/** When windows begin: at one time for all clients, or at a time derived from each client's key. */
export interface Start {
  readonly spread: boolean;
  /** A time at which a window of a fixed length begins, in milliseconds after the Unix epoch. */
  readonly startMs: number;
  /**
   * Whether `start` is a time with its zone. Calendar windows then begin at the local time of
   * `startMs`.
   */
  readonly isTime?: true;
  /** Present if `start` has a notation that only calendar windows have, such as `15 09:00`. */
  readonly parts?: Partial<CalendarStart>;
}

/** The schema of {@link StartFields}. */
export const startFields = {
  start: v.optional(parsedText(parseStart, START), "epoch"),
  timeZone: v.optional(parsedText((text) => (isTimeZone(text) ? text : undefined), TIME_ZONE)),
};

function parseStart(text: string): Start | undefined {
  if (text === "spread") return { spread: true, startMs: 0 };
  if (text === "epoch") return { spread: false, startMs: 0 };
  const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(text);
  if (!iso) {
    const parts = parseCalendarStart(text);
    return parts && { spread: false, startMs: 0, parts };
  }
  const startMs = Date.parse(text);
  // Date.parse reads 30 February as 2 March, so the day of the result must be the given day.
  const day = text.slice(0, 10);
  if (Number.isNaN(startMs) || !new Date(day).toISOString().startsWith(day)) return undefined;
  return { spread: false, startMs, isTime: true };
}
