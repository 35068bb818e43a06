import * as v from "valibot";
import { DURATION, parseDuration } from "./duration.ts";
import { faultText } from "./fault-text.ts";
import { checkOf } from "./field-checks.ts";
import { fields, integer, isRecord, listOf, parsed, pathTo, pathToItem } from "./fields.ts";
import {
  isWindowLength,
  type WindowInput,
  type WindowLength,
  WindowLengthSchema,
} from "./window-length.ts";

/**
 * The largest limit: 15 digits. The RateLimit fields carry limits as Integers of RFC 9651, which have at
 * most 15 digits.
 */
export const MAX_LIMIT = 999_999_999_999_999;
/**
 * The maximum number of windows of a rule. Every decision has to check a counter for each window.
 */
export const MAX_WINDOWS = 8;

const LIMITS = faultText("a rule or tier has either limit and window, or limits");

/** The optional fields of a limit. */
export interface LimitExtras {
  /**
   * The maximum quota that a client can have at once, if unused quota rolls over to later windows.
   * It is a whole number that is not below the limit, in the unit of `cost` (by default, requests).
   * Cannot be set together with `limit: 0`.
   *
   * @default the limit: no quota rolls over
   * @example limit: 10, window: "1h", capacity: 30
   */
  readonly capacity?: number | undefined;
  /**
   * The maximum quota of later windows that a program may reserve, if it calls the method `limit`
   * with the option `reserve`. It is a whole number, 0 or higher, in the unit of `cost` (by
   * default, requests). It must be 0 if the limit is 0.
   *
   * @default 0
   */
  readonly maxReserved?: number | undefined;
}

/** One element of `limits`. */
export interface LimitInput extends LimitExtras {
  /**
   * How much quota each window adds: a whole number from 0 to 999999999999999, in the unit of `cost`
   * (requests, by default). 0 denies every request, except requests that cost 0.
   */
  readonly limit: number;
  /**
   * The length of the window: `"10s"`, `"1m"`, `"1h"`, `"1d"`, `"1w"`, or a number of whole seconds, from 1
   * second to 52 weeks; or `"day"`, `"week"`, `"month"` or `"year"`: a window of the calendar, in the rule's
   * `timeZone`. Every element of `limits` needs a different window.
   */
  readonly window: WindowInput;
}

/** The limits of a rule or of a tier: either `limit` and `window`, or `limits`. */
export interface LimitFields extends LimitExtras {
  /**
   * How much quota each window adds: a whole number from 0 to 999999999999999, in the unit of `cost`
   * (requests, by default). 0 denies every request, except requests that cost 0.
   *
   * Required together with `window`, unless `limits` is set. Cannot be set together with `limits`.
   */
  readonly limit?: number | undefined;
  /**
   * The length of the window: `"10s"`, `"1m"`, `"1h"`, `"1d"`, `"1w"`, or a number of whole seconds. From 1
   * second to 52 weeks. Or `"day"`, `"week"`, `"month"` or `"year"`: a window of the calendar, in the rule's
   * `timeZone`.
   *
   * Required together with `limit`, unless `limits` is set. Cannot be set together with `limits`.
   */
  readonly window?: WindowInput | undefined;
  /**
   * Several limits, 1 to 8, each with a different window. A request passes only if every window has
   * enough quota left. `capacity` and `maxReserved` then belong in the elements.
   *
   * @example [{ limit: 60, window: "1m" }, { limit: 1000, window: "1h" }]
   */
  readonly limits?: readonly LimitInput[] | undefined;
}

/** A length of time. The output is in seconds. */
export const Duration = parsed<string | number, number>(parseDuration, DURATION);

const limitExtras = {
  capacity: v.optional(integer(0, MAX_LIMIT)),
  maxReserved: v.optional(integer(0, MAX_LIMIT)),
};

const Limits = v.pipe(
  listOf(
    v.pipe(
      fields({ limit: integer(0, MAX_LIMIT), window: WindowLengthSchema, ...limitExtras }),
      checkLimitExtras(),
    ),
    faultText("a list of { limit, window }"),
  ),
  v.rawCheck(({ dataset, addIssue }) => {
    const elements: unknown = dataset.value;
    // The checks also run if an element has a fault, so that all faults are reported at once.
    if (!Array.isArray(elements)) return;
    if (elements.length > MAX_WINDOWS) {
      addIssue({ message: faultText(() => `a rule can have at most ${MAX_WINDOWS} limits`) });
    }
    const seen = new Map<unknown, number>();
    for (const [index, element] of elements.entries()) {
      if (!isRecord(element) || !isWindowLength(element.window)) continue;
      const first = seen.get(element.window);
      if (first === undefined) {
        seen.set(element.window, index);
        continue;
      }
      addIssue({
        path: [pathToItem(elements, index), pathTo(element, "window")],
        input: element.window,
        message: faultText(
          () => `limits[${first}] has the same window, and each element needs a different one`,
        ),
      });
    }
  }),
);

/** The schema of {@link LimitFields}. */
export const limitFields = {
  limit: v.optional(integer(0, MAX_LIMIT)),
  window: v.optional(WindowLengthSchema),
  limits: v.optional(Limits),
  ...limitExtras,
};

/** {@link LimitExtras}, parsed. */
interface ParsedExtras {
  readonly capacity?: number | undefined;
  readonly maxReserved?: number | undefined;
}

/** {@link LimitInput}, parsed. */
export interface ParsedLimit extends ParsedExtras {
  readonly limit: number;
  readonly window: WindowLength;
}

/** {@link LimitFields}, parsed. */
export interface ParsedLimitFields extends ParsedExtras {
  readonly limit?: number | undefined;
  readonly window?: WindowLength | undefined;
  readonly limits?: readonly ParsedLimit[] | undefined;
}

/**
 * Checks that either `limits` is set, or both `limit` and `window`. It also checks a value that has
 * other faults, so that all faults are reported at once.
 */
export function checkLimitFields<Fields extends ParsedLimitFields>() {
  return checkOf<Fields>((value, refuse) => {
    const given = Object.keys(limitFields).filter((field) => value[field] !== undefined);
    const wrong = given.includes("limits")
      ? given.filter((field) => field !== "limits")
      : ["limit", "window"].filter((field) => !given.includes(field));
    for (const field of wrong) {
      const isExtra = field in limitExtras;
      const text = faultText(() => `with limits, write ${field} in each element of limits`);
      refuse(isExtra ? text : LIMITS, field);
    }
  });
}

/** Checks that `capacity` is at least the limit, and that a limit of 0 has no extras. */
export function checkLimitExtras<Fields extends ParsedExtras>() {
  return checkOf<Fields>(({ limit, capacity, maxReserved }, refuse) => {
    if (typeof limit !== "number") return;
    if (typeof capacity === "number" && limit === 0) {
      refuse(faultText("remove capacity: with a limit of 0, no quota can roll over"), "capacity");
    } else if (typeof capacity === "number" && capacity < limit) {
      refuse(
        faultText(() => `capacity must be at least the limit, ${limit}`),
        "capacity",
      );
    }
    if (typeof maxReserved === "number" && maxReserved > 0 && limit === 0) {
      refuse(
        faultText("remove maxReserved: with a limit of 0, no quota can be reserved"),
        "maxReserved",
      );
    }
  });
}
