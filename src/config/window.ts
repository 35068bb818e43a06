import * as v from "valibot";
import {
  CALENDAR_UNITS,
  type Calendar,
  type CalendarUnit,
  calendarFrom,
  isCalendarUnit,
  unitLengthMs,
  type ZonedStart,
} from "./calendar.ts";
import { DURATION, type DurationInput, formatDuration, parseDuration } from "./duration.ts";
import { faultText } from "./faults.ts";
import { checkListOf, checkOf, fields, integer, isRecord, listOf, parsed } from "./fields.ts";
import {
  isSource,
  type LimitSource,
  type LimitSourceInput,
  numberOrSource,
  type WindowSources,
} from "./limit-source.ts";

/**
 * The length of a window: a fixed length, such as `"1h"`, or a unit of the calendar.
 *
 * @example "10s", "1h", "1d", 90, "day", "month"
 */
export type WindowInput = DurationInput | CalendarUnit;

/** A parsed length of a window: seconds, or a unit of the calendar. */
type WindowLength = number | CalendarUnit;

/** Whether a value is a parsed length of a window. */
export function isWindowLength(value: unknown): value is WindowLength {
  return typeof value === "number" || isCalendarUnit(value);
}

/** The units of the calendar, for messages. */
export const UNITS = faultText(() => CALENDAR_UNITS.map((unit) => JSON.stringify(unit)).join(", "));

/** The schema of the length of a window. */
const WindowLengthSchema = parsed<WindowInput, WindowLength>(
  (value) => (isCalendarUnit(value) ? value : parseDuration(value)),
  faultText(() => `${DURATION}; or ${UNITS} of the calendar`),
);

/** The largest limit. The RateLimit headers carry limits as Integers of RFC 9651, which have at most 15 digits. */
export const MAX_LIMIT = 999_999_999_999_999;
/** The maximum number of windows of a rule, because every decision checks a counter for each window. */
export const MAX_WINDOWS = 8;

const LIMITS = faultText("a rule or tier has limit and window, or limits, or concurrent");

/** The maximum of `concurrent`. A store reads all open slots of a client with each decision. */
export const MAX_CONCURRENT = 1000;

/** The optional fields of a limit. */
interface LimitExtras {
  /**
   * The maximum quota that a client can have at once, if unused quota rolls over to later windows: a whole number
   * that is at least the limit, in the unit of `cost` (by default, requests). Cannot be set together with `limit: 0`. If
   * `limit` or `capacity` has a source, `capacity` must be above the limit: its `default` and its `max`.
   *
   * @default the limit: no quota rolls over
   * @example limit: 10, window: "1h", capacity: 30
   */
  readonly capacity?: number | LimitSourceInput | undefined;
  /**
   * The maximum quota of later windows that may be reserved: by a program with the method `limit` and its option
   * `reserve`, and by requests under a rule with `wait`. A whole number from 0, in the unit of `cost` (by default,
   * requests). Must be 0 if the limit is 0.
   *
   * @default 0
   */
  readonly maxReserved?: number | undefined;
  /**
   * Whether the limit holds for every interval of the window's length, whenever the interval begins: a *sliding window*.
   * A number sets how many sub-windows are counted, from 2 to 60. A client that sends evenly is never denied up to
   * `sliding / (sliding + 1)` of its limit. The number must divide the window into whole milliseconds. Cannot be set
   * together with a window of the calendar, `capacity`, `maxReserved`, `shards` above 1 or `start: "spread"`.
   *
   * @default false: the limit holds for each window from its start to its end
   * @example limit: 5, window: "1m", sliding: true // 10 sub-windows
   */
  readonly sliding?: boolean | number | undefined;
}

/** One element of `limits`. */
export interface LimitInput extends LimitExtras {
  /**
   * The quota that each window adds: a whole number from 0 to 999999999999999, in the unit of `cost` (requests, by
   * default). 0 denies every request, except requests that cost 0. Or the source of each client's own number.
   *
   * @example { from: "custom:quota", max: 100_000, default: 100 }
   */
  readonly limit: number | LimitSourceInput;
  /**
   * The length of the window: `"10s"`, `"1m"`, `"1h"`, `"1d"`, `"1w"`, or a number of whole seconds, from 1 second to
   * 52 weeks. Or a calendar window in the rule's `timeZone`: `"day"`, `"week"`, `"month"` or `"year"`. Every element
   * of `limits` needs a different window.
   */
  readonly window: WindowInput;
}

/** The limits of a rule or of a tier: either `limit` and `window`, or `limits`. */
export interface LimitFields extends LimitExtras {
  /**
   * The quota that each window adds: a whole number from 0 to 999999999999999, in the unit of `cost` (requests, by
   * default). 0 denies every request, except requests that cost 0. Or the source of each client's own number.
   *
   * Required together with `window`, unless `limits` is set. Cannot be set together with `limits`.
   *
   * @example { from: "custom:quota", max: 100_000, default: 100 }
   */
  readonly limit?: number | LimitSourceInput | undefined;
  /**
   * The length of the window: `"10s"`, `"1m"`, `"1h"`, `"1d"`, `"1w"`, or a number of whole seconds, from 1 second to
   * 52 weeks. Or a calendar window in the rule's `timeZone`: `"day"`, `"week"`, `"month"` or `"year"`.
   *
   * Required together with `limit`, unless `limits` is set. Cannot be set together with `limits`.
   */
  readonly window?: WindowInput | undefined;
  /**
   * Several limits, 1 to 8, each with a different window. A request passes only if every window has enough quota
   * left. With this field, `capacity`, `maxReserved` and `sliding` belong in its elements.
   *
   * @example [{ limit: 60, window: "1m" }, { limit: 1000, window: "1h" }]
   */
  readonly limits?: readonly LimitInput[] | undefined;
  /**
   * The maximum number of requests of a client that are open at the same time, from 1 to 1000. A request is open until
   * its response has ended, and the request for a WebSocket until the WebSocket opens. With this field, limits with
   * windows are optional. A tier without it has the number of its rule.
   *
   * @default none: any number of requests may be open
   * @example 4
   */
  readonly concurrent?: number | LimitSourceInput | undefined;
}

const DEFAULT_SUB_WINDOWS = 10;

/** The maximum of `sliding`. Each decision reads a count for each sub-window. */
const MAX_SUB_WINDOWS = 60;

function isSubWindows(value: unknown): value is number | false {
  const isNumber = Number.isInteger(value) && (value as number) >= 2;
  return value === false || (isNumber && (value as number) <= MAX_SUB_WINDOWS);
}

const limitExtras = {
  capacity: v.optional(numberOrSource(0, MAX_LIMIT)),
  maxReserved: v.optional(integer(0, MAX_LIMIT)),
  sliding: v.optional(
    parsed<boolean | number, number | false>(
      (value) => (value === true ? DEFAULT_SUB_WINDOWS : isSubWindows(value) ? value : undefined),
      faultText(() => `true, false, or a whole number of sub-windows from 2 to ${MAX_SUB_WINDOWS}`),
    ),
  ),
};

const Limit = fields({
  limit: numberOrSource(0, MAX_LIMIT),
  window: WindowLengthSchema,
  ...limitExtras,
});

const Limits = v.pipe(
  listOf(v.pipe(Limit, checkLimitExtras()), faultText("a list of { limit, window }")),
  checkListOf((elements, refuse) => {
    if (elements.length > MAX_WINDOWS) {
      refuse(
        "too-many",
        faultText(() => `a rule can have at most ${MAX_WINDOWS} limits`),
      );
    }
    const windows = elements.map((element) => (isRecord(element) ? element.window : undefined));
    for (const [index, window] of windows.entries()) {
      const first = windows.indexOf(window);
      if (!isWindowLength(window) || first === index) continue;
      refuse(
        "duplicate",
        faultText(
          () => `limits[${first}] has the same window, and each element needs a different one`,
        ),
        index,
        "window",
      );
    }
  }),
);

/** The schema of {@link LimitFields}. */
export const limitFields = {
  limit: v.optional(numberOrSource(0, MAX_LIMIT)),
  window: v.optional(WindowLengthSchema),
  limits: v.optional(Limits),
  ...limitExtras,
  concurrent: v.optional(numberOrSource(1, MAX_CONCURRENT)),
};

/** {@link LimitInput}, parsed. */
type ParsedLimit = v.InferOutput<typeof Limit>;

/** {@link LimitFields}, parsed. */
export type ParsedLimitFields = v.InferOutput<v.ObjectSchema<typeof limitFields, undefined>>;

/**
 * Checks that either `limits` is set, or both `limit` and `window`, or only `concurrent`. Also checks a value with
 * other faults, so that all faults are reported at once.
 */
export function checkLimitFields<Output>() {
  return checkOf<Output>((value, refuse) => {
    const given = Object.keys(limitFields).filter(
      (field) => field !== "concurrent" && value[field] !== undefined,
    );
    if (value.concurrent !== undefined && given.every((field) => field in limitExtras)) {
      for (const field of given) {
        const text = faultText(
          () => `remove ${field}, or write limit and window: a slot has no ${field}`,
        );
        refuse("needs", text, field);
      }
      return;
    }
    const hasLimits = given.includes("limits");
    const wrong = hasLimits
      ? given.filter((field) => field !== "limits")
      : ["limit", "window"].filter((field) => !given.includes(field));
    for (const field of wrong) {
      const isExtra = field in limitExtras;
      const text = faultText(() => `with limits, write ${field} in each element of limits`);
      refuse(hasLimits ? "conflict" : "missing", isExtra ? text : LIMITS, field);
    }
  });
}

/**
 * Checks that `capacity` is at least the limit, and that a limit of 0 has no extras. If one of them differs by client,
 * the capacity must be above the limit, because then quota rolls over for all clients.
 */
export function checkLimitExtras<Output>() {
  return checkOf<Output>(({ limit, window, capacity, maxReserved, sliding }, refuse) => {
    if (typeof sliding === "number") {
      if (isCalendarUnit(window)) {
        const text = 'remove sliding, or write a fixed length such as "1d": days differ in length';
        refuse("conflict", faultText(text), "sliding");
      } else if (typeof window === "number" && (window * 1000) % sliding !== 0) {
        const text = faultText(
          () =>
            `${sliding} does not divide ${formatDuration(window)} into whole milliseconds; ${DEFAULT_SUB_WINDOWS} divides every window`,
        );
        refuse("conflict", text, "sliding");
      }
      const text = (field: string) =>
        faultText(() => `remove ${field}: with sliding, no quota rolls over or is reserved`);
      if (capacity !== undefined) refuse("conflict", text("capacity"), "capacity");
      if (Number(maxReserved) > 0) refuse("conflict", text("maxReserved"), "maxReserved");
    }
    const [least, most] = boundsOf(limit);
    const [leastCapacity, mostCapacity] = boundsOf(capacity);
    const differs = isSource(limit) || isSource(capacity);
    if (leastCapacity >= 0 && least === 0) {
      refuse(
        "conflict",
        faultText("remove capacity: with a limit of 0, no quota can roll over"),
        "capacity",
      );
    } else if (differs && (leastCapacity <= least || mostCapacity <= most)) {
      const text =
        "capacity must be above the limit: its default above default, and its max above max";
      refuse("conflict", faultText(text), "capacity");
    } else if (mostCapacity < most) {
      refuse(
        "conflict",
        faultText(() => `capacity must be at least the limit, ${most}`),
        "capacity",
      );
    }
    if (typeof maxReserved === "number" && maxReserved > 0 && least === 0) {
      refuse(
        "conflict",
        faultText("remove maxReserved: with a limit of 0, no quota can be reserved"),
        "maxReserved",
      );
    }
  });
}

/** Returns the default and the maximum of a number; NaN for a missing or faulty one. */
function boundsOf(value: unknown): [number, number] {
  if (isSource(value)) return [value.default, value.max];
  const number = typeof value === "number" ? value : Number.NaN;
  return [number, number];
}

/** One limit of a rule or of one of its tiers, with its window. */
export interface Window {
  /**
   * The name of the policy in the RateLimit headers: the name of the rule. If the rule has several limits, the name
   * is followed by the window, such as `search/1m`.
   */
  readonly policy: string;
  /** The quota that each window adds. */
  readonly limit: number;
  /** The maximum quota that a client can have; equal to `limit` if no quota rolls over. */
  readonly capacity: number;
  /** The maximum quota of later windows that can be reserved. */
  readonly maxReserved: number;
  /**
   * The length of the window in milliseconds. For a calendar window, the longest possible length without changes of
   * the clocks.
   */
  readonly windowMs: number;
  /**
   * The start of a window in milliseconds after the Unix epoch, modulo `windowMs`: at least 0, and less than
   * `windowMs`. 0 for a calendar window.
   */
  readonly offsetMs: number;
  /** The number of sub-windows, if the limit holds for every interval of `windowMs`: see engine/sub-windows.ts. */
  readonly sliding?: number;
  /** The calendar of the window, if its length is a unit of the calendar. */
  readonly calendar?: Calendar;
  /**
   * Present if this is no window but the limit `concurrent`. Then `limit` is the maximum number of open requests, and
   * `windowMs` the time after which a slot that nobody gives back expires.
   */
  readonly concurrent?: true;
  /** Present if unused quota rolls over for other clients. The client then has the same kind of counter. */
  readonly rollsOver?: true;
  /** The sources of the numbers that differ by client. `limit` and `capacity` are then the defaults. */
  readonly from?: WindowSources;
}

/**
 * Returns the windows of a rule or of one of its tiers. The limit `concurrent` comes last.
 *
 * @param name the name of the rule
 * @param maxDurationMs the time after which a slot that nobody gives back expires
 * @param isOnly whether neither the rule nor any of its tiers has windows. The policy then has the name of the rule
 */
export function windowsOf(
  name: string,
  fields: ParsedLimitFields,
  start: ZonedStart,
  maxDurationMs: number,
  isOnly: boolean,
): Window[] {
  // Without `limits`, the schema has checked that `limit` and `window` are set, or else `concurrent`.
  const all = fields.limits ?? (fields.limit === undefined ? [] : [fields as ParsedLimit]);
  const isSingle = all.length + Number(fields.concurrent !== undefined) === 1;
  const windows: Window[] = all.map(
    ({ limit, window, capacity = limit, maxReserved = 0, sliding }) => ({
      policy: isSingle ? name : `${name}/${labelOf(window)}`,
      ...numbersOf(limit, capacity),
      maxReserved,
      ...(sliding && { sliding }),
      ...(typeof window === "number"
        ? { windowMs: window * 1000, offsetMs: floorMod(start.startMs, window * 1000) }
        : calendarWindowOf(window, start)),
    }),
  );
  if (fields.concurrent === undefined) return windows;
  const policy = isOnly ? name : `${name}/${CONCURRENT}`;
  const slots = { maxReserved: 0, windowMs: maxDurationMs, offsetMs: 0, concurrent: true } as const;
  return [...windows, { policy, ...numbersOf(fields.concurrent, fields.concurrent), ...slots }];
}

function numbersOf(limit: number | LimitSource, capacity: number | LimitSource) {
  const from = {
    ...(isSource(limit) && { limit }),
    ...(isSource(capacity) && capacity !== limit && { capacity }),
  };
  const numbers = { limit: boundsOf(limit)[0], capacity: boundsOf(capacity)[0] };
  return Object.keys(from).length > 0 ? { ...numbers, from } : numbers;
}

/** The name of the limit `concurrent` in stored keys and in the names of policies. */
const CONCURRENT = "concurrent";

function labelOf(window: WindowLength): string {
  return typeof window === "number" ? formatDuration(window) : window;
}

function calendarWindowOf(unit: CalendarUnit, start: ZonedStart) {
  return { windowMs: unitLengthMs(unit), offsetMs: 0, calendar: calendarFrom(unit, start) };
}

/**
 * Formats the length of a window as in a configuration: `1m`, `90s`, `month`. Stored keys and the names of policies
 * contain this text.
 */
export function formatWindow({
  windowMs,
  calendar,
  concurrent,
}: Pick<Window, "windowMs" | "calendar" | "concurrent">): string {
  return concurrent ? CONCURRENT : (calendar?.unit ?? formatDuration(windowMs / 1000));
}

/** Formats the time for which a limit holds: `per 1m`, or `in any 1m` for a sliding window. */
export function formatPer(
  window: Pick<Window, "windowMs" | "calendar"> & { readonly sliding?: number | undefined },
): string {
  return `${window.sliding === undefined ? "per" : "in any"} ${formatWindow(window)}`;
}

/** Returns a remainder that is never negative, even for starts before 1970. */
function floorMod(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}
