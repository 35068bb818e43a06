import * as v from "valibot";
import { type Cost, CostSchema, CountSchema } from "./charge.ts";
import { type Exempt, ExemptSchema } from "./exempt.ts";
import { fields, integer, oneOf, parsedText, pathToItem, textMatching } from "./fields.ts";
import { ALLOWED_KEYS, type KeyExpression, parseAlternatives } from "./key-expression.ts";
import { checkLimitExtras, checkLimitFields, Duration, limitFields } from "./limits.ts";
import { type Match, MatchSchema } from "./match.ts";
import { type DenialResponse, ResponseSchema } from "./response.ts";
import { checkLocalShare, checkParams, checkPrograms, checkShards } from "./rule-checks.ts";
import { TiersSchema } from "./tiers.ts";
import { type Window, windowsOf } from "./windows.ts";

export type { Window } from "./windows.ts";

/** The maximum number of counters that share the quota of one key. */
const MAX_SHARDS = 100;

const NAME = "1 to 64 characters of a-z, 0-9, - and _, the first a letter or digit";
const START = '"epoch", or a time with its zone, such as "2026-01-01T09:00:00-08:00", or "spread"';
const KEY = `${ALLOWED_KEYS}; "a | b" for the first one present; a list for all of them together`;

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

const SHARE = "a number above 0, at most 1";
const LocalShare = v.custom<number>(
  (value) => typeof value === "number" && value > 0 && value <= 1,
  SHARE,
);

/**
 * The default of `localShare`. One isolate seldom receives a larger part of a client's requests.
 */
const DEFAULT_LOCAL_SHARE = 0.25;

/** When windows begin: at one time for all clients, or at a time derived from each client's key. */
export interface Start {
  readonly spread: boolean;
  readonly startMs: number;
}

function parseStart(text: string): Start | undefined {
  if (text === "spread") return { spread: true, startMs: 0 };
  if (text === "epoch") return { spread: false, startMs: 0 };
  const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(text);
  const startMs = iso ? Date.parse(text) : Number.NaN;
  // Date.parse reads 30 February as 2 March, so the day is compared.
  const day = text.slice(0, 10);
  if (Number.isNaN(startMs) || !new Date(day).toISOString().startsWith(day)) return undefined;
  return { spread: false, startMs };
}

const RuleFields = fields({
  name: textMatching(/^[a-z0-9][a-z0-9_-]{0,63}$/, NAME),
  match: v.optional(MatchSchema, {}),
  key: v.optional(Key, "ip"),
  ...limitFields,
  start: v.optional(parsedText(parseStart, START), "epoch"),
  shards: v.optional(integer(1, MAX_SHARDS), 1),
  cost: v.optional(CostSchema, 1),
  count: v.optional(CountSchema, "request"),
  tiers: v.optional(TiersSchema),
  exempt: v.optional(ExemptSchema),
  ban: v.optional(Duration),
  mode: v.optional(oneOf("enforce", "shadow"), "enforce"),
  onError: v.optional(oneOf("open", "closed", "local"), "open"),
  localShare: v.optional(LocalShare),
  lease: v.optional(
    v.custom<"auto" | false>((value) => value === "auto" || value === false, '"auto", false'),
    "auto",
  ),
  retryJitter: v.optional(Duration),
  response: v.optional(ResponseSchema),
  for: v.optional(oneOf("all", "programs"), "all"),
});

export const RuleSchema = v.pipe(
  RuleFields,
  checkLimitFields(),
  checkLimitExtras(),
  checkParams(),
  checkShards(),
  checkLocalShare(),
  checkPrograms(),
  v.transform(toRule),
);

function toRule(fields: v.InferOutput<typeof RuleFields>): Rule {
  const { name, match, key, mode, onError, response, shards, cost, exempt, tiers } = fields;
  const { spread, startMs } = fields.start;
  return {
    name,
    for: fields.for,
    match,
    key,
    windows: windowsOf(name, fields, startMs),
    spread,
    shards,
    cost,
    countStatus: fields.count,
    tiers: tiers && {
      by: tiers.by,
      windows: new Map(
        [...tiers.limits].map(([tier, limits]) => [tier, windowsOf(name, limits, startMs)]),
      ),
    },
    exempt,
    banMs: fields.ban && fields.ban * 1000,
    mode,
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
  /**
   * A request is charged only if its response has one of these statuses; undefined if every request
   * is charged.
   */
  readonly countStatus: readonly number[] | undefined;
  readonly tiers: Tiers | undefined;
  readonly exempt: Exempt | undefined;
  /** How long a client is denied after it exceeds the limit; undefined if the rule has no ban. */
  readonly banMs: number | undefined;
  readonly mode: "enforce" | "shadow";
  readonly onError: "open" | "closed" | "local";
  /** The part of each limit that one isolate admits with `onError: "local"`. */
  readonly localShare: number;
  /** Whether an isolate may take quota in blocks and decide without a call to the store. */
  readonly lease: boolean;
  /** The largest random delay that is added to Retry-After. */
  readonly retryJitterMs: number;
  readonly response?: DenialResponse;
}

/**
 * Different windows for some clients. A client belongs to a tier if its value of `by` is the name
 * of the tier.
 */
export interface Tiers {
  readonly by: KeyExpression;
  readonly windows: ReadonlyMap<string, readonly Window[]>;
}
