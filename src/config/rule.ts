import * as v from "valibot";
import { CostSchema, CountSchema } from "./charge.ts";
import { ExemptSchema } from "./exempt.ts";
import { fields, integer, oneOf, parsed } from "./fields.ts";
import { ALLOWED_KEYS, type KeyExpression, parseAlternatives } from "./key-expression.ts";
import { MatchSchema, splitRoute } from "./match.ts";
import {
  Duration,
  extrasFitLimit,
  oneWayToLimit,
  pathTo,
  pathToItem,
  type Quotas,
  quotaFields,
  type Window,
  windowsOf,
} from "./quota.ts";
import { ResponseSchema } from "./response.ts";
import { TiersSchema } from "./tiers.ts";

export type { Window } from "./quota.ts";

/** Counters that one quota may be spread over. */
const MAX_SHARDS = 100;

const NAME = "1 to 64 of a-z, 0-9, - and _, the first a letter or digit";
const START = '"epoch", or a time with its zone, such as "2026-01-01T09:00:00-08:00", or "spread"';
const KEY = `${ALLOWED_KEYS}; "a | b" for the first one present; a list for all of them together`;

const Key = v.pipe(
  v.union([v.string(), v.array(v.string())], KEY),
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

const SHARE = "a number above 0, at most 1";
const LocalShare = v.pipe(v.number(SHARE), v.gtValue(0, SHARE), v.maxValue(1, SHARE));

/** One isolate seldom sees more than a part of a client's requests. */
const DEFAULT_LOCAL_SHARE = 0.25;

/** Where windows begin: for all clients at one time, or for each at one drawn from its key. */
type Start = { readonly spread: boolean; readonly startMs: number };

const RuleFields = fields({
  name: parsed((text) => (/^[a-z0-9][a-z0-9_-]{0,63}$/.test(text) ? text : undefined), NAME),
  match: v.optional(MatchSchema, {}),
  key: v.optional(Key, "ip"),
  ...quotaFields,
  start: v.optional(parsed(parseStart, START), "epoch"),
  shards: v.optional(integer(1, MAX_SHARDS), 1),
  cost: v.optional(CostSchema, 1),
  count: v.optional(CountSchema, "request"),
  tiers: v.optional(TiersSchema),
  exempt: v.optional(ExemptSchema),
  ban: v.optional(Duration),
  mode: v.optional(oneOf("enforce", "shadow"), "enforce"),
  onError: v.optional(oneOf("open", "closed", "local"), "open"),
  localShare: v.optional(LocalShare),
  lease: v.optional(v.union([v.literal("auto"), v.literal(false)], '"auto", false'), "auto"),
  retryJitter: v.optional(Duration),
  response: v.optional(ResponseSchema),
});

function parseStart(text: string): Start | undefined {
  if (text === "spread") return { spread: true, startMs: 0 };
  if (text === "epoch") return { spread: false, startMs: 0 };
  const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(text);
  const startMs = iso ? Date.parse(text) : Number.NaN;
  // Date.parse takes 30 February for 2 March.
  const day = text.slice(0, 10);
  if (Number.isNaN(startMs) || !new Date(day).toISOString().startsWith(day)) return undefined;
  return { spread: false, startMs };
}

type RuleFields = v.InferOutput<typeof RuleFields>;

/** `param:id` needs a path with `:id` in it, or it would count every request by IP unnoticed. */
const paramsExist = v.rawCheck<RuleFields>(({ dataset, addIssue }) => {
  if (!dataset.typed) return;
  const { key, tiers, match } = dataset.value;
  const routes = (match.paths ?? []).flatMap(splitRoute);
  const require = (expression: KeyExpression, path: [v.ObjectPathItem, ...v.ObjectPathItem[]]) => {
    for (const part of expression.flat()) {
      if (part.kind !== "param") continue;
      const named = new RegExp(`^:${part.name}(?!\\w)`);
      if (routes.some((segment) => named.test(segment))) continue;
      const names = routes.flatMap((segment) => /^:(\w+)/.exec(segment)?.[1] ?? []);
      const message = `a parameter of match.paths, which has ${names.join(", ") || "none"}`;
      addIssue({ path, input: `param:${part.name}`, message });
    }
  };
  require(key, [pathTo(dataset.value, "key")]);
  if (tiers) require(tiers.by, [pathTo(dataset.value, "tiers"), pathTo({ ...tiers }, "by")]);
});

/** A shard of nothing would deny whoever is sent to it. */
const shardsFitLimits = v.rawCheck<RuleFields>(({ dataset, addIssue }) => {
  if (!dataset.typed || dataset.value.shards === 1) return;
  const { shards, tiers, ban } = dataset.value;
  if (ban !== undefined) {
    const path: [v.ObjectPathItem] = [pathTo(dataset.value, "ban")];
    addIssue({
      path,
      input: ban,
      message: "no ban beside shards, which do not know of each other",
    });
  }
  const limited: Quotas[] = [dataset.value, ...(tiers?.limits.values() ?? [])];
  const smallest = Math.min(
    ...limited.flatMap(({ limit, limits }) => limits?.map((quota) => quota.limit) ?? limit ?? []),
  );
  if (shards <= smallest) return;
  addIssue({
    path: [pathTo(dataset.value, "shards")],
    input: shards,
    message: `no more than the smallest limit, which is ${smallest}: each shard has a part of it`,
  });
});

/** It says nothing of a rule that is never counted in an isolate. */
const localShareIsUsed = v.rawCheck<RuleFields>(({ dataset, addIssue }) => {
  if (!dataset.typed) return;
  const { localShare, onError } = dataset.value;
  if (localShare === undefined || onError === "local") return;
  const path: [v.ObjectPathItem] = [pathTo(dataset.value, "localShare")];
  addIssue({ path, input: localShare, message: 'only beside onError: "local"' });
});

export const RuleSchema = v.pipe(
  RuleFields,
  oneWayToLimit(),
  extrasFitLimit(),
  paramsExist,
  shardsFitLimits,
  localShareIsUsed,
  v.transform((rule) => {
    const { name, match, key, mode, onError, response, shards, cost, exempt } = rule;
    const { spread, startMs } = rule.start;
    return {
      name,
      match,
      key,
      /** What every client has that is in none of the tiers. */
      windows: windowsOf(name, rule, startMs),
      /** Windows begin for each client at a time drawn from its identity; `offsetMs` is 0. */
      spread,
      /** Counters that the quota of one client is spread over. */
      shards,
      cost,
      /** Only responses with one of these statuses are charged; undefined: every request. */
      countStatus: rule.count,
      tiers: rule.tiers && {
        by: rule.tiers.by,
        windows: new Map<string, Window[]>(
          [...rule.tiers.limits].map(([tier, quotas]) => [tier, windowsOf(name, quotas, startMs)]),
        ),
      },
      exempt,
      /** How long a client stays denied that was over; undefined: until its window ends. */
      banMs: rule.ban && rule.ban * 1000,
      mode,
      onError,
      /** The part of each limit that one isolate admits by itself, with `onError: "local"`. */
      localShare: rule.localShare ?? DEFAULT_LOCAL_SHARE,
      /** Whether an isolate may take quota in blocks and decide by itself. */
      lease: rule.lease === "auto",
      /** Retry-After is put off by up to this, so that not all who were denied return at once. */
      retryJitterMs: (rule.retryJitter ?? 0) * 1000,
      ...(response && { response }),
    };
  }),
);

/** A rule as Weir works with it: everything valid, every default filled in. */
export type Rule = v.InferOutput<typeof RuleSchema>;
