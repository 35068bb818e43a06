import * as v from "valibot";
import type { Escalation } from "./ban.ts";
import { checkCalendar } from "./calendar-checks.ts";
import { chargeFields, checkReserve, type StatusCount } from "./charge.ts";
import type { Cost } from "./cost.ts";
import { type Exempt, ExemptSchema } from "./exempt.ts";
import { faultText } from "./fault-text.ts";
import { fields, integer, oneOf, pathToItem, textMatching } from "./fields.ts";
import { ALLOWED_KEYS, type KeyExpression, parseAlternatives } from "./key-expression.ts";
import {
  checkLimitExtras,
  checkLimitFields,
  limitFields,
  type ParsedLimitFields,
} from "./limits.ts";
import { type Match, MatchSchema } from "./match.ts";
import { type Mode, outcomeFields } from "./outcome.ts";
import type { CustomDenial, DenialResponse } from "./response.ts";
import {
  checkCount,
  checkLocalShare,
  checkMode,
  checkParams,
  checkPrograms,
  checkShards,
} from "./rule-checks.ts";
import { startFields } from "./start.ts";
import { TiersSchema } from "./tiers.ts";
import { type Window, windowsOf } from "./windows.ts";

export type { Window } from "./windows.ts";

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

const RuleFields = fields({
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
});

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
