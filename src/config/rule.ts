import * as v from "valibot";
import { formatDuration, MAX_WINDOW_SECONDS, parseDuration } from "./duration.ts";
import { fields, integer, isRecord, listOf, oneOf, parsed } from "./fields.ts";
import { ALLOWED_KEYS, type KeyExpression, parseAlternatives } from "./key-expression.ts";
import { MatchSchema, splitRoute } from "./match.ts";
import { ResponseSchema } from "./response.ts";

/**
 * The largest quota: RFC 9651 gives an Integer 15 digits, and the RateLimit fields carry quotas
 * as such.
 */
export const MAX_LIMIT = 999_999_999_999_999;
/** Windows that one rule may have. Each is a counter of its own, paid for in every decision. */
export const MAX_WINDOWS = 8;

const NAME = "1 to 64 of a-z, 0-9, - and _, the first a letter or digit";
const WINDOW = `"10s", "1m", "1h", "1d", "1w" or a number of whole seconds, at most 52 weeks (${MAX_WINDOW_SECONDS})`;
const START = '"epoch", or a time with its zone, such as "2026-01-01T09:00:00-08:00"';
const LIMITS = "either limits, or limit and window";
const KEY = `${ALLOWED_KEYS}; "a | b" for the first one present; a list for all of them together`;

const Limit = integer(0, MAX_LIMIT);

const Window = v.pipe(
  v.union([v.string(), v.number()], WINDOW),
  v.rawTransform<string | number, number>(({ dataset, addIssue, NEVER }) => {
    const seconds = parseDuration(dataset.value);
    if (seconds !== undefined) return seconds;
    addIssue({ message: WINDOW });
    return NEVER;
  }),
);

const Limits = v.pipe(
  listOf(fields({ limit: Limit, window: Window }), "a list of { limit, window }"),
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
      const item = {
        type: "array",
        origin: "value",
        input: dataset.value,
        key: index,
        value: quota,
      } as const;
      addIssue({
        path: [item, pathTo(quota, "window")],
        input: formatDuration(quota.window),
        message: `a window of its own; this one is that of limits[${first}]`,
      });
    }
  }),
);

const Key = v.pipe(
  v.union([v.string(), v.array(v.string())], KEY),
  v.rawTransform<string | string[], KeyExpression>(({ dataset, addIssue, NEVER }) => {
    const { value } = dataset;
    const elements = [value].flat().map(parseAlternatives);
    if (elements.length > 0 && elements.every((element) => element !== undefined)) return elements;
    for (const [index, element] of elements.entries()) {
      if (element !== undefined) continue;
      if (typeof value === "string") addIssue({ message: KEY });
      else {
        const item = {
          type: "array",
          origin: "value",
          input: value,
          key: index,
          value: value[index],
        } as const;
        addIssue({ path: [item], input: value[index], message: KEY });
      }
    }
    if (elements.length === 0) addIssue({ message: KEY });
    return NEVER;
  }),
);

const RuleFields = fields({
  name: parsed((text) => (/^[a-z0-9][a-z0-9_-]{0,63}$/.test(text) ? text : undefined), NAME),
  match: v.optional(MatchSchema, {}),
  key: v.optional(Key, "ip"),
  limit: v.optional(Limit),
  window: v.optional(Window),
  limits: v.optional(Limits),
  start: v.optional(parsed(parseStart, START), "epoch"),
  mode: v.optional(oneOf("enforce", "shadow"), "enforce"),
  onError: v.optional(oneOf("open", "closed"), "open"),
  response: v.optional(ResponseSchema),
});

/** Milliseconds since the Unix epoch at which some window begins. */
function parseStart(text: string): number | undefined {
  if (text === "epoch") return 0;
  const iso = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,3})?)?(Z|[+-]\d\d:\d\d)$/.test(text);
  const ms = iso ? Date.parse(text) : Number.NaN;
  // Date.parse takes 30 February for 2 March.
  const day = text.slice(0, 10);
  if (Number.isNaN(ms) || !new Date(day).toISOString().startsWith(day)) return undefined;
  return ms;
}

type RuleFields = v.InferOutput<typeof RuleFields>;

/** One quota of a rule. */
export interface Window {
  /** What the policy is called in the RateLimit fields: the rule's name, or `search/1m`. */
  readonly policy: string;
  /** Requests per window. */
  readonly limit: number;
  readonly windowMs: number;
  /** How long after the Unix epoch a window begins, less whole windows: 0 ≤ offsetMs < windowMs. */
  readonly offsetMs: number;
}

function windowsOf({ name, limit, window, limits, start }: RuleFields): Window[] {
  const quotas = limits ?? [{ limit: limit as number, window: window as number }];
  return quotas.map(({ limit, window }) => ({
    policy: quotas.length === 1 ? name : `${name}/${formatDuration(window)}`,
    limit,
    windowMs: window * 1000,
    offsetMs: floorMod(start, window * 1000),
  }));
}

/** The remainder that is never negative, for starts before 1970. */
function floorMod(value: number, divisor: number): number {
  return ((value % divisor) + divisor) % divisor;
}

/** A rule has either `limits`, or `limit` and `window`. Checked on what is there, typed or not. */
const oneWayToLimit = v.rawCheck<RuleFields>(({ dataset, addIssue }) => {
  const rule: unknown = dataset.value;
  if (!isRecord(rule)) return;
  const given = ["limit", "window", "limits"].filter((field) => rule[field] !== undefined);
  const wrong = given.includes("limits")
    ? given.filter((field) => field !== "limits")
    : ["limit", "window"].filter((field) => !given.includes(field)).slice(0, 1);
  for (const field of wrong) {
    const item = pathTo(rule, field);
    addIssue({ path: [item], input: item.value, message: LIMITS });
  }
});

/** `param:id` needs a path with `:id` in it, or it would count every request by IP unnoticed. */
const paramsExist = v.rawCheck<RuleFields>(({ dataset, addIssue }) => {
  if (!dataset.typed) return;
  const { key, match } = dataset.value;
  const routes = (match.paths ?? []).flatMap(splitRoute);
  for (const part of key.flat()) {
    if (part.kind !== "param") continue;
    const named = new RegExp(`^:${part.name}(?!\\w)`);
    if (routes.some((segment) => named.test(segment))) continue;
    const path: [v.ObjectPathItem] = [pathTo(dataset.value, "key")];
    const names = routes.flatMap((segment) => /^:(\w+)/.exec(segment)?.[1] ?? []);
    const message = `a parameter of match.paths, which has ${names.join(", ") || "none"}`;
    addIssue({ path, input: `param:${part.name}`, message });
  }
});

function pathTo(input: Record<string, unknown>, key: string): v.ObjectPathItem {
  return { type: "object", origin: "value", input, key, value: input[key] };
}

export const RuleSchema = v.pipe(
  RuleFields,
  oneWayToLimit,
  paramsExist,
  v.transform(({ limit, window, limits, start, ...rule }) => ({
    ...rule,
    windows: windowsOf({ ...rule, limit, window, limits, start }),
  })),
);

/** A rule as Weir works with it: everything valid, every default filled in. */
export type Rule = v.InferOutput<typeof RuleSchema>;
