import * as v from "valibot";
import { checkClaims, checkCustomKeys } from "./config-checks.ts";
import { type CustomFunctions, type CustomInput, CustomSchema } from "./custom.ts";
import { fields, integer, listUpTo, oneOf, pathTo, pathToItem, textMatching } from "./fields.ts";
import { type JwtConfig, type JwtInput, JwtSchema } from "./jwt.ts";
import { type NativeLimiterInput, NativeLimiterSchema } from "./native-limiter.ts";
import { type OriginConfig, type OriginInput, OriginSchema } from "./origin.ts";
import { type Rule, RuleSchema } from "./rule.ts";
import type { RuleInput } from "./rule-input.ts";

export const MAX_RULES = 10_000;

const RULES = `a list of rules, at most ${MAX_RULES}`;
/** The allowed values of `prefix` and of the var `WEIR_PREFIX`, for messages. */
export const PREFIX = "1 to 64 characters of A-Z, a-z, 0-9, -, _ and .";
const PREFIX_PATTERN = /^[A-Za-z0-9._-]{1,64}$/;

/** Whether a text can be the first part of every stored key. */
export function isPrefix(text: string): boolean {
  return PREFIX_PATTERN.test(text);
}

/**
 * The argument of `defineConfig`.
 *
 * @typeParam RuleName the names of the rules, as literal types
 * @example { rules: [{ name: "login", match: { paths: ["/login"] }, limit: 5, window: "1m" }] }
 */
export interface ConfigInput<RuleName extends string = string> {
  /** The rules: at most 10,000, each with a unique name. Every rule that matches a request counts it. */
  readonly rules: readonly RuleInput<RuleName>[];
  /**
   * Where Weir forwards requests: `{ url }` or `{ binding }`. The middleware ignores this field.
   *
   * @default the zone's own origin
   * @example { url: "https://origin.example.com" }
   */
  readonly origin?: OriginInput | undefined;
  /**
   * Where Weir counts. `"upstash"`: in Upstash Redis. `"durable-object"`: in Durable Objects. `"memory"`: in
   * each isolate alone, for tests only.
   *
   * @default "upstash" if UPSTASH_REDIS_REST_URL is set, otherwise "durable-object"
   */
  readonly store?: "upstash" | "durable-object" | "memory" | undefined;
  /**
   * Which clock determines the current window. `"redis"`: the clock of the store, Redis or the
   * Durable Object. `"edge"`: the clock of the Worker, which saves one Redis command in each call.
   *
   * @default "redis"
   */
  readonly clock?: "redis" | "edge" | undefined;
  /**
   * The first part of every stored key: 1 to 64 characters of `A-Z a-z 0-9 . _ -`. Workers with the
   * same prefix and store share the counters of rules with the same name. If the var `WEIR_PREFIX`
   * is set, it replaces this prefix.
   *
   * @default "weir"
   */
  readonly prefix?: string | undefined;
  /**
   * The maximum time that a decision waits for the store, in milliseconds: a whole number from 1 to
   * 30000. After this time, the request is undecided, and the rule's `onError` applies. Before the
   * call to the store, the functions in `custom` may take the same time.
   *
   * @default 1000
   */
  readonly timeoutMs?: number | undefined;
  /**
   * Which header fields show clients their quotas. `"draft-11"`: RateLimit and RateLimit-Policy of the IETF
   * draft. `"legacy"`: X-RateLimit-*. `"both"`: all of them, in a form that clients of older drafts
   * read, too. `"none"`: no fields.
   *
   * @default "draft-11"
   */
  readonly headers?: "draft-11" | "legacy" | "both" | "none" | undefined;
  /**
   * How many leading bits of an IPv6 address identify a client: a whole number from 1 to 128. One home or
   * server usually has a whole /64.
   *
   * @default 64
   */
  readonly ipv6Prefix?: number | undefined;
  /**
   * Whether upper and lower case differ in paths.
   *
   * @default false
   */
  readonly caseSensitivePaths?: boolean | undefined;
  /**
   * How Weir verifies the tokens whose claims are keys (`"jwt:CLAIM"`): either `secret` or `jwks` is set.
   *
   * @default none: a key that reads a claim is refused
   * @example { jwks: "https://issuer.example.com/.well-known/jwks.json" }
   */
  readonly jwt?: JwtInput | undefined;
  /**
   * Cloudflare's own rate limiter, which rules with `onError: "local"` also call while the store fails.
   *
   * @default none
   * @example { binding: "NATIVE_LIMITER" }
   */
  readonly nativeLimiter?: NativeLimiterInput | undefined;
  /**
   * Your own functions. `keys` has a function for each key `custom:NAME` of the rules. No other
   * field of a configuration may be a function.
   *
   * @default no functions, so a key `custom:NAME` in a rule for HTTP requests is a fault
   * @example { keys: { plan: (request, { env }) => env.PLANS.get(request.headers.get("x-api-key")) } }
   */
  readonly custom?: CustomInput | undefined;
}

/**
 * A checked configuration: every value is valid, and every default is filled in.
 *
 * @typeParam RuleName the names of the rules, as literal types
 */
export interface Config<RuleName extends string = string> {
  readonly rules: readonly Rule<RuleName>[];
  readonly origin?: OriginConfig | undefined;
  readonly store?: "upstash" | "durable-object" | "memory" | undefined;
  readonly clock: "redis" | "edge";
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly headers: "draft-11" | "legacy" | "both" | "none";
  readonly ipv6Prefix: number;
  readonly caseSensitivePaths: boolean;
  readonly jwt?: JwtConfig | undefined;
  readonly nativeLimiter?: NativeLimiterInput | undefined;
  readonly custom?: CustomFunctions | undefined;
}

/** The names of a configuration's rules. */
export type RuleNameOf<C extends Config | ConfigInput> = C["rules"][number]["name"];

const Rules = v.pipe(
  listUpTo(MAX_RULES, RuleSchema, RULES, `there can be at most ${MAX_RULES} rules`),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!Array.isArray(dataset.value)) return;
    if (dataset.value.length > MAX_RULES) return;
    const seen = new Map<string, number>();
    for (const [index, rule] of dataset.value.entries()) {
      const name: unknown = rule?.name;
      if (typeof name !== "string") continue;
      const first = seen.get(name);
      if (first === undefined) {
        seen.set(name, index);
        continue;
      }
      addIssue({
        path: [pathToItem(dataset.value, index), pathTo({ name }, "name")],
        input: name,
        message: `rules[${first}] has the same name, and each rule needs a different one`,
      });
    }
  }),
);

function isBoolean(value: unknown): boolean {
  return typeof value === "boolean";
}

const ConfigFields = fields({
  rules: Rules,
  origin: v.optional(OriginSchema),
  store: v.optional(oneOf("upstash", "durable-object", "memory")),
  clock: v.optional(oneOf("redis", "edge"), "redis"),
  prefix: v.optional(textMatching(PREFIX_PATTERN, PREFIX), "weir"),
  timeoutMs: v.optional(integer(1, 30_000), 1000),
  headers: v.optional(oneOf("draft-11", "legacy", "both", "none"), "draft-11"),
  ipv6Prefix: v.optional(integer(1, 128), 64),
  caseSensitivePaths: v.optional(v.custom<boolean>(isBoolean, "true or false"), false),
  jwt: v.optional(JwtSchema),
  nativeLimiter: v.optional(NativeLimiterSchema),
  custom: v.optional(CustomSchema),
});

/**
 * This schema is the only source of a configuration's defaults, bounds and messages. Its input is
 * {@link ConfigInput}, and its output is {@link Config}.
 */
export const ConfigSchema = v.pipe(ConfigFields, checkClaims(), checkCustomKeys());
