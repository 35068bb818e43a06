import * as v from "valibot";
import { type BanInput, BanSchema } from "./ban.ts";
import { isCalendarUnit, type Start, StartSchema, TimeZone } from "./calendar.ts";
import {
  type CostInput,
  CostSchema,
  type CountInput,
  CountSchema,
  NEEDS_SETTLE,
  reserveIn,
} from "./cost.ts";
import { Duration, type DurationInput, durationUpTo } from "./duration.ts";
import { faultText, listOfNames, shortened } from "./faults.ts";
import {
  boolean,
  checkOf,
  type Fields,
  fields,
  integer,
  isMap,
  isRecord,
  type LiteralUnion,
  oneOf,
  parsed,
  type Refuse,
  textMatching,
} from "./fields.ts";
import { type KeyExpression, type KeyInput, KeySchema, partsOf } from "./key.ts";
import { isSource } from "./limit-source.ts";
import { MAX_ROUTE, type Match, type MatchInput, MatchSchema, splitRoute } from "./match.ts";
import {
  type CustomDenial,
  type CustomResponseInput,
  type DenialResponse,
  type ResponseInput,
  ResponseSchema,
} from "./response.ts";
import { type ExemptInput, ExemptSchema, labelsOf, type TiersInput, TiersSchema } from "./tiers.ts";
import {
  checkLimitExtras,
  checkLimitFields,
  isWindowLength,
  type LimitFields,
  limitFields,
  type ParsedLimitFields,
  UNITS,
  type Window,
  windowsOf,
} from "./window.ts";

export type { Window } from "./window.ts";

/**
 * The effect of a rule on requests over the limit: it denies them, only logs them, or lets them pass and marks them
 * for the origin.
 */
export type Mode = "enforce" | "shadow" | "mark";

/**
 * A rule: the requests that it counts, the value that identifies a client, and the number of requests that pass.
 *
 * @typeParam Name the name of the rule, as a literal type
 * @example { name: "login", match: { paths: ["/login"] }, key: "ip", limit: 5, window: "1m" }
 */
export interface RuleInput<Name extends string = string> extends LimitFields {
  /**
   * The name of the rule, unique in the configuration: 1 to 64 characters of `a-z 0-9 - _`, beginning with a letter
   * or digit. Clients see the name in the RateLimit headers. The name is part of the stored keys, so a renamed rule
   * begins with empty counters.
   */
  readonly name: Name;
  /**
   * `"all"`: the rule counts HTTP requests, and calls of programs through `WeirService`. `"programs"`: the rule
   * counts only calls of programs. In such a rule, a key `custom:NAME` needs no function. Fields that apply only to
   * HTTP requests, such as `match` and `exempt`, are faults.
   *
   * @default "all"
   */
  readonly for?: "all" | "programs" | undefined;
  /**
   * The requests that the rule counts.
   *
   * @default every request
   * @example { methods: ["POST"], paths: ["/login"] }
   */
  readonly match?: MatchInput | undefined;
  /**
   * The value that distinguishes clients:
   *
   * - `"ip"`: the client's address; for IPv6, its network of `ipv6Prefix` bits
   * - `"header:NAME"`, `"cookie:NAME"`, `"query:NAME"`: the header, cookie or query parameter NAME
   * - `"param:NAME"`: the part of the path that matches `:NAME` in `match.paths`
   * - `"host"`, `"path"`, `"method"`: the host, path or method of the request
   * - `"country"`, `"asn"`: the client's country or network operator, as Cloudflare reports it
   * - `"ja4"`: the fingerprint of the client's TLS handshake; needs Cloudflare's Bot Management
   * - `"global"`: one counter for all clients
   * - `"jwt:CLAIM"`: a claim of the client's verified token; needs the top-level field `jwt`. A nested claim is a
   *   JSON Pointer, such as `"jwt:/app_metadata/plan"`
   * - `"custom:NAME"`: the result of your function `custom.keys.NAME`, a top-level field
   * - `"a | b"`: the first of these values that the request has
   * - a list: all of its elements combined
   *
   * If the request has none of the values, Weir uses the client's address instead. Clients can choose some values
   * freely, such as an unchecked header. For such a key, add a second rule with `key: "ip"`.
   *
   * @default "ip"
   * @example "header:x-api-key | ip"
   * @example ["header:x-api-key", "path"]
   */
  readonly key?: KeyInput | readonly KeyInput[] | undefined;
  /**
   * The time after which a slot of `concurrent` expires that nobody gives back, because an isolate has died. Requests
   * that take longer renew their slots. Written like `window`. Needs `concurrent`.
   *
   * @default "5m"
   */
  readonly maxDuration?: DurationInput | undefined;
  /**
   * The longest time for which an HTTP request over the limit waits for its turn instead of being denied: for quota of
   * the next windows, or for a slot of `concurrent`. A request that cannot pass within this time is denied at once.
   * Written like `window`, from 1 second to 1 minute.
   *
   * @default none: no request waits
   * @example limit: 5, window: "1s", wait: "2s"
   */
  readonly wait?: DurationInput | undefined;
  /**
   * Whether an HTTP request may pass before the store has decided it. The request is charged as usual, and the next
   * ones of the same client wait for its answer. In a window, a client then gets at most its limit, and one request
   * more for each isolate that it reaches. A request passes ahead only if all other enforced rules that count it have
   * `async` too, or are decided without a call to the store. The origin then gets no `Weir-Remaining` and `Weir-Over`.
   *
   * @default false
   */
  readonly async?: boolean | undefined;
  /**
   * The start of windows. `"epoch"`: windows begin at multiples of their length after the Unix epoch. Calendar
   * windows then begin at midnight: every day, on Mondays, on the first day of a month, or on 1 January. A time with
   * its zone: one of the windows begins at this time. Calendar windows then begin on the same day and at the same
   * local time. `"spread"`: windows begin at a different time for each client, so that clients do not all retry at
   * the same moment.
   *
   * Calendar windows can also begin at a local time (`"09:00"`), on a day of the month (`"15"`, `"15 09:00"`), a day
   * of the week (`"sunday"`, `"sunday 18:00"`), or a day of the year (`"04-06"`, `"04-06 09:00"`: 6 April). In a
   * month without this day, the window begins on the last day.
   *
   * @default "epoch"
   * @example "2026-01-01T09:00:00-08:00"
   */
  readonly start?:
    | LiteralUnion<
        "epoch" | "spread" | "2026-01-01T00:00:00Z" | "15 09:00" | "monday" | "04-06" | "09:00"
      >
    | undefined;
  /**
   * The IANA name of the time zone of the windows `"day"`, `"week"`, `"month"` and `"year"`. The field needs such a
   * window, because other windows have no time zone.
   *
   * @default "UTC"
   * @example "Europe/Berlin"
   */
  readonly timeZone?:
    | LiteralUnion<"UTC" | "Europe/Berlin" | "America/New_York" | "Asia/Tokyo">
    | undefined;
  /**
   * The number of counters (shards) that share the quota of one busy key: a whole number from 1 to 100, and not
   * higher than the rule's smallest limit. Near the limit, a request may be denied although another shard has quota
   * left. A number above 1 and `ban` cannot be set together.
   *
   * @default 1
   */
  readonly shards?: number | undefined;
  /**
   * The quota that a request takes:
   *
   * - a whole number from 0 to 999999999999999
   * - `"custom:NAME"`: the result of your function `custom.costs.NAME`, a top-level field
   * - `"body:bytes"`: the length of the request's body
   * - `"header:NAME"`: the number in the header NAME of the origin's response
   * - an object: for bounds, or for an estimate that is charged before the request and settled by the response. See
   *   {@link ComputedCostInput}
   *
   * A cost that only the response determines is charged after the response arrives, so concurrent requests can exceed
   * the limit in total.
   *
   * @default 1
   * @example "header:x-tokens-used"
   * @example { from: "custom:depth", max: 100 }
   * @example { reserve: 1200, settle: "header:x-tokens-used" }
   */
  readonly cost?: CostInput | undefined;
  /**
   * The requests that are charged: `"request"` for every request, or only requests whose responses have one of these
   * HTTP statuses (100 to 599). With statuses, Weir charges a request after its response arrives, so concurrent
   * requests can exceed the limit in total. With `reserve: true` too, Weir charges a request before it is forwarded,
   * and gives the quota back if the response has none of these statuses.
   *
   * @default "request"
   * @example { status: [401, 403] }
   */
  readonly count?: CountInput | undefined;
  /**
   * Different limits for some clients.
   *
   * @default none
   * @example { by: "jwt:plan", limits: { pro: { limit: 5000, window: "1m" } } }
   */
  readonly tiers?: TiersInput | undefined;
  /**
   * The requests that the rule does not count. At least one of `ips` and `headers` is required. Other rules still
   * count these requests.
   *
   * @default none
   * @example { ips: ["198.51.100.0/24"] }
   */
  readonly exempt?: ExemptInput | undefined;
  /**
   * The length of time for which a client is denied after it exceeds the limit, written like `window`. For bans that
   * become longer, a list of lengths. Cannot be set together with `shards` above 1.
   *
   * @default none: a client is admitted again when a window gives it quota
   * @example "15m"
   * @example ["1m", "10m", "1h"]
   */
  readonly ban?: BanInput | undefined;
  /**
   * `"enforce"`: the rule denies requests over the limit. `"shadow"`: the rule decides and logs,
   * but never denies a request, and clients do not see the rule. `"mark"`: requests over the limit
   * pass, and the origin gets the rule's name in the request header `Weir-Over`.
   *
   * @default "enforce"
   */
  readonly mode?: Mode | undefined;
  /**
   * Whether the origin gets the client's remaining quota in the request header `Weir-Remaining`.
   * Cannot be set together with `mode: "shadow"`.
   *
   * @default false
   */
  readonly tellOrigin?: boolean | undefined;
  /**
   * The treatment of a request that the store cannot decide. `"open"`: the request passes. `"closed"`: the request
   * gets 503. `"local"`: each isolate counts in its memory, and admits the share `localShare` of each limit.
   *
   * @default "open"
   */
  readonly onError?: "open" | "closed" | "local" | undefined;
  /**
   * The share of each limit that one isolate admits with `onError: "local"`: a number above 0 and at most 1. Needs
   * `onError: "local"`.
   *
   * @default 0.25
   */
  readonly localShare?: number | undefined;
  /**
   * The largest random delay that Weir adds to Retry-After, so that denied clients do not all return at the same
   * moment. Written like `window`.
   *
   * @default none
   * @example "10s"
   */
  readonly retryJitter?: DurationInput | undefined;
  /**
   * The status, body and headers of a denial, or `"custom:NAME"` for the response that your function
   * `custom.responses.NAME` creates.
   *
   * @default 429 with application/problem+json
   * @example { status: 503, body: "Slow down." }
   * @example "custom:page"
   */
  readonly response?: ResponseInput | CustomResponseInput | undefined;
  /**
   * The shares of each limit at which Weir reports a client's use: 1 to 4 different numbers above 0, at most 1. When a
   * request's charge reaches a share, Weir writes the log line `quota-used` and calls your function `custom.events`, in
   * the background: once in a window. Every window must be at least a minute long.
   *
   * @default none
   * @example [0.8, 1]
   */
  readonly notify?: readonly number[] | undefined;
  /**
   * `"auto"`: a busy isolate takes quota in blocks and decides without a call to the store. `false`: every
   * admitted request takes a call to the store.
   *
   * @default "auto"
   */
  readonly lease?: "auto" | false | undefined;
}

/** The maximum number of counters that share the quota of one key. */
const MAX_SHARDS = 100;

const NAME = faultText("1 to 64 characters of a-z, 0-9, - and _, the first a letter or digit");

/** The default of `localShare`. A client seldom sends a larger part of its requests to one isolate. */
const DEFAULT_LOCAL_SHARE = 0.25;

const DEFAULT_MAX_DURATION_SECONDS = 300;

/** The maximum number of shares in `notify`. */
const MAX_SHARES = 4;

/** Returns the shares of `notify` in ascending order. */
function sharesOf(value: unknown): readonly number[] | undefined {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_SHARES) return undefined;
  const isShare = (each: unknown) => typeof each === "number" && each > 0 && each <= 1;
  if (!value.every(isShare) || new Set(value).size < value.length) return undefined;
  return value.toSorted((one, other) => one - other);
}

/** The maximum of `wait`, in seconds. Most clients and proxies give up soon after this time. */
export const MAX_WAIT_SECONDS = 60;

/** The schema of each field of a rule. */
export const ruleFields = {
  name: textMatching(/^[a-z0-9][a-z0-9_-]{0,63}$/, NAME),
  match: v.optional(MatchSchema, {}),
  key: v.optional(KeySchema, "ip"),
  ...limitFields,
  maxDuration: v.optional(Duration),
  wait: v.optional(
    parsed<DurationInput, number>(
      (value) => durationUpTo(MAX_WAIT_SECONDS, value),
      faultText('"1s" to "60s", or a number of whole seconds from 1 to 60'),
    ),
  ),
  async: v.optional(boolean(), false),
  start: v.optional(StartSchema, "epoch"),
  timeZone: v.optional(TimeZone),
  shards: v.optional(integer(1, MAX_SHARDS), 1),
  cost: v.optional(CostSchema, 1),
  count: v.optional(CountSchema, "request"),
  tiers: v.optional(TiersSchema),
  exempt: v.optional(ExemptSchema),
  ban: v.optional(BanSchema),
  mode: v.optional(oneOf("enforce", "shadow", "mark"), "enforce"),
  tellOrigin: v.optional(boolean(), false),
  onError: v.optional(oneOf("open", "closed", "local"), "open"),
  localShare: v.optional(
    v.custom<number>(
      (value) => typeof value === "number" && value > 0 && value <= 1,
      faultText("a number above 0, at most 1"),
    ),
  ),
  retryJitter: v.optional(Duration),
  response: v.optional(ResponseSchema),
  notify: v.optional(
    parsed<readonly number[], readonly number[]>(
      sharesOf,
      faultText("a list of 1 to 4 different numbers above 0, at most 1"),
    ),
  ),
  lease: v.optional(
    v.custom<"auto" | false>(
      (value) => value === "auto" || value === false,
      faultText('"auto", false'),
    ),
    "auto",
  ),
  for: v.optional(oneOf("all", "programs"), "all"),
} satisfies { [Field in keyof RuleInput]-?: v.GenericSchema<RuleInput[Field], unknown> };

const RuleFields = fields(ruleFields);

export const RuleSchema = v.pipe(
  RuleFields,
  checkLimitFields(),
  checkLimitExtras(),
  checkOf(checkCalendar),
  checkOf(checkParams),
  checkOf(checkShards),
  checkOf(checkSliding),
  checkOf(checkConcurrent),
  checkOf(checkWait),
  checkOf(checkAsync),
  checkOf(checkNotify),
  checkOf(checkCost),
  checkOf(checkEffects),
  v.transform(toRule),
);

/**
 * A checked rule: every value is valid, and every default is filled in.
 *
 * @typeParam Name the name of the rule, as a literal type
 */
export type Rule<Name extends string = string> = Readonly<
  Omit<ReturnType<typeof toRule>, "name">
> & {
  readonly name: Name;
};

/** Different windows for some clients. A client belongs to a tier if its value of `by` is the tier's name. */
export interface Tiers {
  readonly by: KeyExpression;
  readonly windows: ReadonlyMap<string, readonly Window[]>;
  /** What Weir shows and logs as the tiers' names: `#1`, `#2` and so on, if the names may be credentials. */
  readonly labels: ReadonlyMap<string, string>;
}

/** Whether a rule or one of its tiers limits open requests. */
export function hasConcurrent({ windows, tiers }: Pick<Rule, "windows" | "tiers">): boolean {
  const isLimited = (each: readonly Window[]) => each.at(-1)?.concurrent === true;
  return isLimited(windows) || [...(tiers?.windows.values() ?? [])].some(isLimited);
}

/** Returns a rule without `concurrent`. If it has no other limit, it has no windows then. */
export function withoutConcurrent(rule: Rule): Rule {
  if (!hasConcurrent(rule)) return rule;
  const inWindows = (windows: readonly Window[]) => windows.filter((each) => !each.concurrent);
  const { windows, tiers } = rule;
  const ofTiers = [...(tiers?.windows ?? [])].map(
    ([tier, each]) => [tier, inWindows(each)] as const,
  );
  return {
    ...rule,
    windows: inWindows(windows),
    tiers: tiers && { ...tiers, windows: new Map(ofTiers) },
  };
}

function toRule(fields: v.InferOutput<typeof RuleFields>) {
  const { name, response, tiers, start, timeZone = "UTC" } = fields;
  const maxDurationMs = 1000 * (fields.maxDuration ?? DEFAULT_MAX_DURATION_SECONDS);
  const isOnly = [fields, ...(tiers?.limits.values() ?? [])].every(
    ({ limit, limits }) => limit === undefined && limits === undefined,
  );
  const toWindows = (limits: ParsedLimitFields) =>
    windowsOf(
      name,
      { ...limits, concurrent: limits.concurrent ?? fields.concurrent },
      { ...start, timeZone },
      maxDurationMs,
      isOnly,
    );
  const ofTiers: Tiers | undefined = tiers && {
    by: tiers.by,
    windows: new Map([...tiers.limits].map(([tier, limits]) => [tier, toWindows(limits)])),
    labels: labelsOf(tiers),
  };
  const windows: readonly Window[] = toWindows(fields);
  const all = [...windows, ...[...(ofTiers?.windows.values() ?? [])].flat()];
  const denial: { readonly response?: DenialResponse | CustomDenial } = response
    ? { response }
    : {};
  return {
    name,
    /** Whether the rule counts HTTP requests and calls of programs, or only calls of programs. */
    for: fields.for,
    match: fields.match as Match,
    key: fields.key,
    /** The windows of every client without a tier. */
    windows,
    /** Whether limits of the rule or of its tiers differ by client. */
    readsLimits: all.some(({ from }) => from !== undefined),
    /**
     * Whether the windows of each client begin at a time derived from its identity. The `offsetMs` of all windows is
     * then 0.
     */
    spread: start.spread,
    /** The number of counters that share the quota of one client. */
    shards: fields.shards,
    cost: fields.cost,
    /** The responses whose requests are charged; undefined if every request is charged. */
    count: fields.count,
    tiers: ofTiers,
    exempt: fields.exempt,
    ban: fields.ban,
    mode: fields.mode as Mode,
    /** Whether the origin gets the remaining quota with each admitted request. */
    tellOrigin: fields.tellOrigin,
    onError: fields.onError,
    /** The part of each limit that one isolate admits with `onError: "local"`. */
    localShare: fields.localShare ?? DEFAULT_LOCAL_SHARE,
    /** The shares of each limit at which a client's use is reported, in ascending order. */
    notify: fields.notify,
    /** Whether an isolate may take quota in blocks and decide without a call to the store. */
    lease: fields.lease === "auto",
    /** The longest time for which a request waits for its turn, in milliseconds; 0 if no request waits. */
    waitMs: (fields.wait ?? 0) * 1000,
    /** Whether a request may pass before the store has decided it. */
    async: fields.async,
    /** The largest random delay that is added to Retry-After. */
    retryJitterMs: (fields.retryJitter ?? 0) * 1000,
    ...denial,
  };
}

/** Whether the origin gets the quotas or the marks of a rule in request headers. */
export function tellsOrigin(rule: Rule): boolean {
  // A rule for programs has no request with headers.
  return rule.for === "all" && (rule.mode === "mark" || rule.tellOrigin);
}

/** Returns the rule in shadow mode, in which neither clients nor the origin notice the rule. */
export function shadowed(rule: Rule): Rule {
  return { ...rule, mode: "shadow", tellOrigin: false };
}

// These checks compare fields of a rule with each other. They also run if the rule has other faults.

/** Returns a rule and its tiers, parsed or not. */
function withTiers(rule: Fields): Fields[] {
  const { tiers } = rule;
  const ofTiers = isRecord(tiers) && isMap(tiers.limits) ? [...tiers.limits.values()] : [];
  return [rule, ...ofTiers].filter(isRecord);
}

/** Returns the elements of the limits of a rule and its tiers, parsed or not. */
function limitsIn(rule: Fields): Fields[] {
  return withTiers(rule)
    .flatMap((each) => (Array.isArray(each.limits) ? each.limits : each) as unknown[])
    .filter(isRecord);
}

/**
 * Checks that `timeZone` and `start` fit the windows of the rule and its tiers. Without a window that uses it, the
 * field `timeZone` or a part of a `start` such as `15 09:00` would have no effect.
 */
function checkCalendar(rule: Fields, refuse: Refuse): void {
  const { start, timeZone } = rule;
  const windows = limitsIn(rule).flatMap(({ window }) => window ?? []);
  // If a window has a fault, the rule's windows are unknown.
  if (!windows.every(isWindowLength)) return;
  const units = windows.filter(isCalendarUnit);
  if (timeZone !== undefined && units.length === 0) {
    refuse(
      "needs",
      faultText(() => `remove timeZone, or write a window of the calendar: ${UNITS}`),
      "timeZone",
    );
  }
  // A faulty start is not parsed.
  if (!isRecord(start)) return;
  const { spread, parts } = start as unknown as Start;
  if (spread && units.length > 0) {
    refuse(
      "conflict",
      faultText(
        'remove "spread": a window of the calendar begins at the same time for all clients',
      ),
      "start",
    );
  }
  const unit = parts?.month ? "year" : parts?.day ? "month" : parts?.weekday ? "week" : undefined;
  if (!parts || (unit ? units.includes(unit) : units.length > 0)) return;
  refuse(
    "needs",
    faultText(
      () =>
        `only a window ${unit ? JSON.stringify(unit) : UNITS} begins at such a start; for other windows, write a time with its zone, such as "2026-01-05T09:00:00Z"`,
    ),
    "start",
  );
}

/**
 * Checks that each `param:NAME` is a parameter of the rule's paths. Otherwise the value would always be absent, and
 * the address would identify every client.
 */
function checkParams({ key, tiers, match = {}, for: audience }: Fields, refuse: Refuse): void {
  const paths = isRecord(match) ? (match.paths ?? []) : undefined;
  // If the paths have a fault, the parameters are unknown. Splitting a too long path would take long.
  if (!Array.isArray(paths) || !paths.every(isShortText)) return;
  const names = paths.flatMap(splitRoute).flatMap((each) => /^:(\w+)/.exec(each)?.[1] ?? []);
  const check = (expression: unknown, ...path: string[]) => {
    for (const part of partsOf(expression)) {
      if (part.kind !== "param" || names.includes(part.name)) continue;
      const message = faultText(() => {
        const name = shortened(part.name);
        const present = names.length > 0 ? `only ${listOfNames(names)}` : "no parameters";
        return audience === "programs"
          ? `a rule for programs has no paths, so write custom:${name}`
          : `param:${name} is no parameter of match.paths, which has ${present}`;
      });
      refuse("needs", message, ...path);
    }
  };
  check(key, "key");
  if (isRecord(tiers)) check(tiers.by, "tiers", "by");
}

function isShortText(path: unknown): path is string {
  return typeof path === "string" && path.length <= MAX_ROUTE;
}

/**
 * Checks a rule with shards. Each shard's share of every limit must be at least 1, because a shard with a limit of 0
 * would deny all of its requests. The rule must have no ban.
 */
function checkShards(rule: Fields, refuse: Refuse): void {
  const { shards, ban } = rule;
  if (typeof shards !== "number" || shards <= 1) return;
  if (ban !== undefined) {
    refuse(
      "conflict",
      faultText("a rule with shards can have no ban, because shards do not share their bans"),
      "ban",
    );
  }
  // A loop, because a call with an argument for each of many tiers would overflow the stack.
  let smallest = Number.POSITIVE_INFINITY;
  for (const { limit: given } of limitsIn(rule)) {
    const limit = isSource(given) ? given.default : given;
    if (typeof limit === "number" && limit >= 0) smallest = Math.min(smallest, limit);
  }
  if (shards <= smallest) return;
  refuse(
    "conflict",
    faultText(
      () =>
        `shards can be at most the smallest limit, ${smallest}, because each shard has a part of it`,
    ),
    "shards",
  );
}

/** Checks the fields that a rule with `sliding` cannot have. */
function checkSliding(rule: Fields, refuse: Refuse): void {
  if (!limitsIn(rule).some(({ sliding }) => typeof sliding === "number")) return;
  const { shards, start } = rule;
  if (typeof shards === "number" && shards > 1) {
    const text = faultText(
      "remove shards: with sliding, each shard would limit only its own requests in an interval",
    );
    refuse("conflict", text, "shards");
  }
  if (isRecord(start) && start.spread === true) {
    const text = faultText('remove "spread": a sliding window has no start at which clients retry');
    refuse("conflict", text, "start");
  }
}

/** Checks `maxDuration`, and the fields that a rule with `concurrent` cannot have. */
function checkConcurrent(rule: Fields, refuse: Refuse): void {
  const { maxDuration, shards } = rule;
  const limits = withTiers(rule);
  if (limits.every(({ concurrent }) => concurrent === undefined)) {
    if (maxDuration === undefined) return;
    const text = faultText(
      "remove maxDuration, or write concurrent: without it, there are no slots",
    );
    refuse("needs", text, "maxDuration");
    return;
  }
  if (typeof shards === "number" && shards > 1) {
    const text = faultText(
      "a rule with concurrent can have no shards, because they do not share slots",
    );
    refuse("conflict", text, "shards");
  }
  if (limits.some(({ limit, limits: several }) => (limit ?? several) !== undefined)) return;
  for (const field of ["ban", "cost", "count"] as const) {
    const value = rule[field];
    // The defaults are filled in.
    if (value === undefined || value === 1 || value === "request") continue;
    const text = faultText(
      () => `remove ${field}, or write limit and window: a slot has no ${field}`,
    );
    refuse("needs", text, field);
  }
}

/** Checks that a request can wait for something, and that a denial before a wait has no other effect. */
function checkWait(rule: Fields, refuse: Refuse): void {
  const { wait, ban } = rule;
  if (wait === undefined) return;
  if (ban !== undefined) {
    const text = "remove wait, or write the ban into a rule of its own with a higher limit";
    refuse("conflict", faultText(text), "wait");
  }
  if (withTiers(rule).some(({ concurrent }) => concurrent !== undefined)) return;
  if (isChargedBefore(rule)) return;
  const text =
    "remove wait: requests that are only charged after the response would pass all at once";
  refuse("conflict", faultText(text), "wait");
}

/** Whether a rule charges a request before the response. */
function isChargedBefore({ cost, count }: Fields): boolean {
  if (isRecord(cost) && cost.before === undefined) return false;
  return !isRecord(count) || !Array.isArray(count.statuses) || count.reserve === true;
}

/** Checks that a request which passes ahead of the store hides nothing, and that the next ones of its client wait. */
function checkAsync(rule: Fields, refuse: Refuse): void {
  if (rule.async !== true) return;
  const conflict = (text: string) => refuse("conflict", text, "async");
  if (rule.ban !== undefined) {
    conflict(
      faultText(
        "remove async, or write the ban into a rule without async: in each isolate, a banned client's request would pass",
      ),
    );
  }
  if (rule.wait !== undefined) {
    conflict(
      faultText(
        "remove async, or remove wait: a request either passes ahead or waits for its turn",
      ),
    );
  }
  if (withTiers(rule).some(({ concurrent }) => concurrent !== undefined)) {
    conflict(
      faultText(
        "remove async, or write concurrent into a rule without async: a request can hold a slot only after the store has given it one",
      ),
    );
  }
  if (rule.onError === "closed") {
    conflict(
      faultText(
        'remove async, or write onError: "local": requests would pass ahead of a store that fails',
      ),
    );
  }
  if (isChargedBefore(rule)) return;
  const isByCost = isRecord(rule.cost);
  conflict(
    faultText(() => {
      const instead = isByCost ? "cost: { reserve, settle }" : "count: { status, reserve: true }";
      return `remove async, or write ${instead}: a request that passed ahead over the limit would never be charged`;
    }),
  );
}

/** Checks that the windows are long enough for `notify`, and that one counter has the whole use of a client. */
function checkNotify(rule: Fields, refuse: Refuse): void {
  if (rule.notify === undefined) return;
  const windows = limitsIn(rule).flatMap(({ window }) => window ?? []);
  if (windows.some((each) => typeof each === "number" && each < 60)) {
    const text = "remove notify, or write windows of at least a minute, also in tiers";
    refuse("conflict", faultText(text), "notify");
  } else if (windows.length === 0) {
    const text = "remove notify, or write limit and window: a slot is no used quota";
    refuse("needs", faultText(text), "notify");
  }
  if (Number(rule.shards) > 1) {
    const text = "remove shards: with notify, one counter must have the whole use of a client";
    refuse("conflict", faultText(text), "shards");
  }
}

/**
 * Checks the charges of a cost before and after the response. A rule for programs needs no `settle`, because the
 * programs settle the reserve. If `count` has statuses, `cost` and `count` must both charge before the response, or
 * both after it. Otherwise the rule would not show the time of the charge.
 */
function checkCost({ for: audience, cost, count }: Fields, refuse: Refuse): void {
  if (!isRecord(cost)) return;
  if (audience === "all" && typeof reserveIn(cost) === "number" && cost.from === undefined) {
    if (cost.settle === undefined) refuse("missing", NEEDS_SETTLE, "cost", "settle");
  }
  if (!isRecord(cost.settle) || !isRecord(count) || !Array.isArray(count.statuses)) return;
  if (cost.before === undefined && count.reserve === true) {
    refuse(
      "conflict",
      faultText(
        "remove reserve: only the response determines the cost. To charge an estimate before, write cost: { reserve, settle }",
      ),
      "count",
    );
  } else if (cost.before !== undefined && count.reserve === false) {
    refuse(
      "conflict",
      faultText("add reserve: true, because cost.reserve is charged before the status is known"),
      "count",
    );
  }
}

/** Checks that every set field has an effect. For example, a rule that never denies must have no ban. */
function checkEffects(rule: Fields, refuse: Refuse): void {
  const { mode, onError, cost } = rule;
  const refuseGiven = (because: string, ...names: string[]) => {
    for (const name of names) {
      const value = rule[name];
      const isDefault = value === undefined || value === false || value === "open";
      if (isDefault || (isRecord(value) && Object.keys(value).length === 0)) continue;
      refuse(
        "conflict",
        faultText(() => `remove ${name}: ${because}`),
        name,
      );
    }
  };
  if (onError === "open" || onError === "closed") {
    refuseGiven(faultText('it needs onError: "local"'), "localShare");
  }
  if (mode === "shadow") {
    refuseGiven(
      faultText('a rule with mode: "shadow" must not change how a request is answered'),
      "tellOrigin",
    );
  }
  if (mode === "mark") {
    const because = faultText('a rule with mode: "mark" never denies a request');
    refuseGiven(
      because,
      "ban",
      "retryJitter",
      "response",
      "onError",
      "localShare",
      "wait",
      "async",
    );
  }
  if (rule.for !== "programs") return;
  const because = faultText('a rule with for: "programs" counts no HTTP request');
  refuseGiven(
    because,
    "match",
    "exempt",
    "response",
    "retryJitter",
    "tellOrigin",
    "count",
    "wait",
    "async",
  );
  if (!isRecord(cost)) return;
  if (typeof reserveIn(cost) !== "number") {
    refuse(
      "conflict",
      faultText(() => `write a whole number, or { reserve: 1200 }: ${because}`),
      "cost",
    );
    return;
  }
  for (const name of ["max", "default"]) {
    if (cost[name] === undefined) continue;
    refuse(
      "conflict",
      faultText(() => `remove ${name}: a program states its costs itself`),
      "cost",
      name,
    );
  }
}
