import * as v from "valibot";
import { formatDuration, MAX_WINDOW_SECONDS, parseDuration } from "./duration.ts";
import { fields, integer, isRecord, listOf } from "./fields.ts";

/**
 * The largest quota: RFC 9651 gives an Integer 15 digits, and the RateLimit fields carry quotas
 * as such.
 */
export const MAX_LIMIT = 999_999_999_999_999;
/** Windows that one rule may have. Each is a counter of its own, paid for in every decision. */
export const MAX_WINDOWS = 8;

const DURATION = `"10s", "1m", "1h", "1d", "1w" or a number of whole seconds, at most 52 weeks (${MAX_WINDOW_SECONDS})`;
const LIMITS = "either limits, or limit and window";

/** A length of time, read as seconds. */
export const Duration = v.pipe(
  v.union([v.string(), v.number()], DURATION),
  v.rawTransform<string | number, number>(({ dataset, addIssue, NEVER }) => {
    const seconds = parseDuration(dataset.value);
    if (seconds !== undefined) return seconds;
    addIssue({ message: DURATION });
    return NEVER;
  }),
);

/** What may stand beside a limit. */
const extras = {
  capacity: v.optional(integer(0, MAX_LIMIT)),
  maxReserved: v.optional(integer(0, MAX_LIMIT)),
};

const Limits = v.pipe(
  listOf(
    v.pipe(fields({ limit: integer(0, MAX_LIMIT), window: Duration, ...extras }), extrasFitLimit()),
    "a list of { limit, window }",
  ),
  v.maxLength(MAX_WINDOWS, `at most ${MAX_WINDOWS} of { limit, window }`),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!dataset.typed) return;
    const seen = new Map<number, number>();
    for (const [index, quota] of dataset.value.entries()) {
      const first = seen.get(quota.window);
      if (first === undefined) {
        seen.set(quota.window, index);
        continue;
      }
      addIssue({
        path: [pathToItem(dataset.value, index), pathTo(quota, "window")],
        input: formatDuration(quota.window),
        message: `a window of its own; this one is that of limits[${first}]`,
      });
    }
  }),
);

/** The fields of whatever has quotas, a rule or a tier: one of them in place, or several listed. */
export const quotaFields = {
  limit: v.optional(integer(0, MAX_LIMIT)),
  window: v.optional(Duration),
  limits: v.optional(Limits),
  ...extras,
};

interface Extras {
  capacity?: number | undefined;
  maxReserved?: number | undefined;
}

interface Quota extends Extras {
  limit: number;
  window: number;
}

/** {@link quotaFields} as they are read. */
export interface Quotas extends Extras {
  limit?: number | undefined;
  window?: number | undefined;
  limits?: Quota[] | undefined;
}

/** There are either `limits`, or `limit` and `window`. Checked on what is there, typed or not. */
export function oneWayToLimit<Fields extends Quotas>() {
  return v.rawCheck<Fields>(({ dataset, addIssue }) => {
    const value: unknown = dataset.value;
    if (!isRecord(value)) return;
    const given = Object.keys(quotaFields).filter((field) => value[field] !== undefined);
    const wrong = given.includes("limits")
      ? given.filter((field) => field !== "limits")
      : ["limit", "window"].filter((field) => !given.includes(field)).slice(0, 1);
    for (const field of wrong) {
      const item = pathTo(value, field);
      const listed = field in extras ? `${LIMITS}; with limits, ${field} stands in each` : LIMITS;
      addIssue({ path: [item], input: item.value, message: listed });
    }
  });
}

/** Quota can roll over to no less than a window's own, and nothing can be kept or reserved of none. */
export function extrasFitLimit<Fields extends Extras>() {
  return v.rawCheck<Fields>(({ dataset, addIssue }) => {
    const value: unknown = dataset.value;
    if (!isRecord(value)) return;
    const { limit, capacity, maxReserved } = value;
    if (typeof limit !== "number") return;
    const refuse = (field: string, message: string) =>
      addIssue({ path: [pathTo(value, field)], input: value[field], message });
    if (typeof capacity === "number" && limit === 0) {
      refuse("capacity", "none beside a limit of 0, which leaves nothing to roll over");
    } else if (typeof capacity === "number" && capacity < limit) {
      refuse("capacity", `a whole number from ${limit}, the limit, to ${MAX_LIMIT}`);
    }
    if (typeof maxReserved === "number" && maxReserved > 0 && limit === 0) {
      refuse("maxReserved", "0 beside a limit of 0, which leaves nothing to reserve");
    }
  });
}

/** One quota of a rule or of one of its tiers. */
export interface Window {
  /** What the policy is called in the RateLimit fields: the rule's name, or `search/1m`. */
  readonly policy: string;
  /** Quota that each window adds. */
  readonly limit: number;
  /** What quota may come to when it rolls over from window to window; the limit when it does not. */
  readonly capacity: number;
  /** How far below zero reservations may take it. */
  readonly maxReserved: number;
  readonly windowMs: number;
  /** How long after the Unix epoch a window begins, less whole windows: 0 ≤ offsetMs < windowMs. */
  readonly offsetMs: number;
}

/**
 * @param name the rule's
 * @param startMs when some window begins, in milliseconds since the Unix epoch
 */
export function windowsOf(name: string, quotas: Quotas, startMs: number): Window[] {
  const { limits, ...only } = quotas;
  // Without limits, `oneWayToLimit` has seen to it that these two are there.
  const listed = limits ?? [only as Quota];
  return listed.map(({ limit, window, capacity = limit, maxReserved = 0 }) => ({
    policy: listed.length === 1 ? name : `${name}/${formatDuration(window)}`,
    limit,
    capacity,
    maxReserved,
    windowMs: window * 1000,
    offsetMs: floorMod(startMs, window * 1000),
  }));
}

/** The remainder that is never negative, for starts before 1970. */
function floorMod(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}

export function pathTo(input: Record<string, unknown>, key: string): v.ObjectPathItem {
  return { type: "object", origin: "value", input, key, value: input[key] };
}

export function pathToItem(input: unknown[], key: number): v.ArrayPathItem {
  return { type: "array", origin: "value", input, key, value: input[key] };
}
