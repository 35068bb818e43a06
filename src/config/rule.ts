import * as v from "valibot";
import { type CalendarUnit, isCalendarUnit, type Start, startFields } from "./calendar.ts";
import type { Cost } from "./cost.ts";
import { faultText } from "./faults.ts";
import { checkOf, fields, integer, isRecord, oneOf, pathToItem, textMatching } from "./fields.ts";
import { ALLOWED_KEYS, type KeyExpression, parseAlternatives } from "./key.ts";
import {
  chargeFields,
  checkReserve,
  type Escalation,
  type Mode,
  outcomeFields,
  type StatusCount,
} from "./limit-fields.ts";
import { type Match, MatchSchema } from "./match.ts";
import type { CustomDenial, DenialResponse } from "./response.ts";
import {
  checkCount,
  checkLocalShare,
  checkMode,
  checkParams,
  checkPrograms,
  checkShards,
} from "./rule-checks.ts";
import { type Exempt, ExemptSchema, TiersSchema } from "./tiers.ts";
import {
  checkLimitExtras,
  checkLimitFields,
  isWindowLength,
  limitFields,
  type ParsedLimitFields,
  UNITS,
  type Window,
  windowsOf,
} from "./window.ts";

/**
 * Checks that `timeZone` and `start` fit the windows of the rule and its tiers. The field `timeZone`
 * and each part of a `start` such as `15 09:00` would have no effect without a window that uses it.
 */
function checkCalendar<Output>() {
  return checkOf<Output>(({ start, timeZone, limits, window, tiers }, refuse) => {
    const ofTiers =
      isRecord(tiers) && tiers.limits instanceof Map ? [...tiers.limits.values()] : [];
    const windows = [{ limits, window }, ...ofTiers].flatMap(windowsIn);
    // If a window has a fault, it is unknown which windows the rule has.
    if (!windows.every(isWindowLength)) return;
    const units = windows.filter(isCalendarUnit);
    if (timeZone !== undefined && units.length === 0) {
      refuse(
        faultText(() => `remove timeZone, or write a window of the calendar: ${UNITS}`),
        "timeZone",
      );
    }
    if (isStart(start)) checkStart(start, units, (message) => refuse(message, "start"));
  });
}

/** Returns the given windows of a rule or tier, parsed or not. */
function windowsIn(fields: unknown): unknown[] {
  if (!isRecord(fields)) return [];
  const elements: unknown[] = Array.isArray(fields.limits) ? fields.limits : [fields];
  return elements.flatMap((each) => (isRecord(each) ? (each.window ?? []) : [])) as unknown[];
}

/** Whether `start` has no fault, and is parsed. */
function isStart(start: unknown): start is Start {
  return isRecord(start) && "startMs" in start;
}

/** Reports the first fault of a start for windows with these units. */
function checkStart(
  { spread, parts }: Start,
  units: readonly CalendarUnit[],
  refuse: (message: string) => void,
): void {
  const lacks = (...needed: CalendarUnit[]) => !needed.some((unit) => units.includes(unit));
  if (spread && units.length > 0) {
    refuse(
      faultText(
        'remove "spread": a window of the calendar begins at the same time for all clients',
      ),
    );
  } else if (parts && units.length === 0) {
    refuse(
      faultText(
        () =>
          `write a time with its zone, such as "2026-01-05T09:00:00Z": only a window of the calendar (${UNITS}) begins at such a start`,
      ),
    );
  } else if (parts?.month && lacks("year")) {
    refuse(faultText('write the start without a month: only a window "year" begins in a month'));
  } else if (parts?.day && lacks("month", "year")) {
    refuse(
      faultText(
        'write the start without a day of the month: only a window "month" or "year" begins on one',
      ),
    );
  } else if (parts?.day && !parts.month && lacks("month")) {
    refuse(faultText('write the month before the day, such as "04-06" for 6 April'));
  } else if (parts?.weekday && lacks("week")) {
    refuse(
      faultText('write the start without a day of the week: only a window "week" begins on one'),
    );
  }
}

export type { Window } from "./window.ts";

/** The maximum number of counters that share the quota of one key. */
const MAX_SHARDS = 100;

const NAME = faultText("1 to 64 characters of a-z, 0-9, - and _, the first a letter or digit");
const KEY = faultText(
  () => `${ALLOWED_KEYS}; "a | b" for the first one present; a list for all of them together`,
);

const Key = v.pipe(
  v.custom<string | string[]>(isKeyShape, KEY),
  v.rawTransform<string | string[], KeyExpression>(({ dataset, addIssue, NEVER }) => {
    const { value } = dataset;
    const elements = [value].flat().map(parseAlternatives);
    if (elements.length > 0 && elements.every((element) => element !== undefined)) return elements;
    for (const [index, element] of elements.entries()) {
      if (element !== undefined) continue;
      if (typeof value === "string") addIssue({ message: KEY });
      else addIssue({ path: [pathToItem(value, index)], input: value[index], message: KEY });
    }
    if (elements.length === 0) addIssue({ message: KEY });
    return NEVER;
  }),
);

function isKeyShape(value: unknown): boolean {
  return [value].flat().every((element) => typeof element === "string");
}

/**
 * The default of `localShare`. One isolate seldom receives a larger part of a client's requests.
 */
const DEFAULT_LOCAL_SHARE = 0.25;

/** The schema of each field of a rule. */
export const ruleFields = {
  name: textMatching(/^[a-z0-9][a-z0-9_-]{0,63}$/, NAME),
  match: v.optional(MatchSchema, {}),
  key: v.optional(Key, "ip"),
  ...limitFields,
  ...startFields,
  shards: v.optional(integer(1, MAX_SHARDS), 1),
  ...chargeFields,
  tiers: v.optional(TiersSchema),
  exempt: v.optional(ExemptSchema),
  ...outcomeFields,
  lease: v.optional(
    v.custom<"auto" | false>(
      (value) => value === "auto" || value === false,
      faultText('"auto", false'),
    ),
    "auto",
  ),
  for: v.optional(oneOf("all", "programs"), "all"),
};

const RuleFields = fields(ruleFields);

export const RuleSchema = v.pipe(
  RuleFields,
  checkLimitFields(),
  checkLimitExtras(),
  checkCalendar(),
  checkParams(),
  checkShards(),
  checkCount(),
  checkReserve(),
  checkLocalShare(),
  checkMode(),
  checkPrograms(),
  v.transform(toRule),
);

function toRule(fields: v.InferOutput<typeof RuleFields>): Rule {
  const { name, match, key, mode, onError, response, shards, cost, exempt, tiers } = fields;
  const { start, timeZone = "UTC" } = fields;
  const toWindows = (limits: ParsedLimitFields) => windowsOf(name, limits, start, timeZone);
  return {
    name,
    for: fields.for,
    match,
    key,
    windows: toWindows(fields),
    spread: start.spread,
    shards,
    cost,
    count: fields.count,
    tiers: tiers && {
      by: tiers.by,
      windows: new Map([...tiers.limits].map(([tier, limits]) => [tier, toWindows(limits)])),
    },
    exempt,
    banMs: fields.ban?.banMs,
    ...(fields.ban?.escalation && { escalation: fields.ban.escalation }),
    mode,
    tellOrigin: fields.tellOrigin,
    onError,
    localShare: fields.localShare ?? DEFAULT_LOCAL_SHARE,
    lease: fields.lease === "auto",
    retryJitterMs: (fields.retryJitter ?? 0) * 1000,
    ...(response && { response }),
  };
}

/**
 * A checked rule: every value is valid, and every default is filled in.
 *
 * @typeParam Name the name of the rule, as a literal type
 */
export interface Rule<Name extends string = string> {
  readonly name: Name;
  /** Whether the rule counts HTTP requests and calls of programs, or only calls of programs. */
  readonly for: "all" | "programs";
  readonly match: Match;
  readonly key: KeyExpression;
  /** The windows of every client without a tier. */
  readonly windows: readonly Window[];
  /**
   * Whether the windows of each client begin at a time derived from its identity. Then the
   * `offsetMs` of all windows is 0.
   */
  readonly spread: boolean;
  /** The number of counters that share the quota of one client. */
  readonly shards: number;
  readonly cost: Cost;
  /** Which responses are charged; undefined if every request is charged. */
  readonly count: StatusCount | undefined;
  readonly tiers: Tiers | undefined;
  readonly exempt: Exempt | undefined;
  /** The length of a client's first ban; undefined if the rule has no ban. */
  readonly banMs: number | undefined;
  /** Present if a client's later bans are longer than its first one. */
  readonly escalation?: Escalation;
  readonly mode: Mode;
  /** Whether the origin gets the remaining quota with each admitted request. */
  readonly tellOrigin: boolean;
  readonly onError: "open" | "closed" | "local";
  /** The part of each limit that one isolate admits with `onError: "local"`. */
  readonly localShare: number;
  /** Whether an isolate may take quota in blocks and decide without a call to the store. */
  readonly lease: boolean;
  /** The largest random delay that is added to Retry-After. */
  readonly retryJitterMs: number;
  readonly response?: DenialResponse | CustomDenial;
}

/**
 * Different windows for some clients. A client belongs to a tier if its value of `by` is the name
 * of the tier.
 */
export interface Tiers {
  readonly by: KeyExpression;
  readonly windows: ReadonlyMap<string, readonly Window[]>;
}
