import * as v from "valibot";
import { type CustomInput, CustomSchema } from "./custom.ts";
import { faultText } from "./faults.ts";
import { bindingName, boolean, fields, integer, oneOf, textMatching } from "./fields.ts";
import { type JwtInput, JwtSchema } from "./jwt.ts";
import { type OriginInput, OriginSchema, type OriginsInput, OriginsSchema } from "./origin.ts";
import { type Rule, tellsOrigin } from "./rule.ts";
import { checkRules, flatRules, type RulesInput, RulesSchema } from "./rules.ts";

const BINDING = faultText("the name of a ratelimits binding in wrangler.toml");
const USAGE_BINDING = faultText(
  "the name of an analytics_engine_datasets binding in wrangler.toml",
);
const NAMED_BINDING = faultText('{ binding: "NAME" }');

/** Cloudflare's own rate limiter, which rules with `onError: "local"` also call while the store fails. */
export interface NativeLimiterInput {
  /**
   * The name of a `ratelimits` binding in wrangler.toml.
   *
   * @example "NATIVE_LIMITER"
   */
  readonly binding: string;
}

const NativeLimiterSchema = fields({ binding: bindingName(BINDING) }, NAMED_BINDING);
const UsageSchema = fields({ binding: bindingName(USAGE_BINDING) }, NAMED_BINDING);

/**
 * The argument of `defineConfig`.
 *
 * @typeParam RuleName the names of the rules, as literal types
 * @example { rules: [{ name: "login", match: { paths: ["/login"] }, limit: 5, window: "1m" }] }
 */
export interface ConfigInput<RuleName extends string = string> {
  /**
   * The rules: at most 10,000, each with a unique name. Every rule that matches a request counts it. For rules in
   * several files, write an object with the list of each file, so that faults name the file.
   *
   * @example { "rules/login.ts": loginRules, "rules/search.ts": searchRules }
   */
  readonly rules: RulesInput<RuleName>;
  /**
   * The origin to which Weir forwards requests: `{ url }` or `{ binding }`. The middleware ignores this field.
   *
   * @default the zone's own origin
   * @example { url: "https://origin.example.com" }
   */
  readonly origin?: OriginInput | undefined;
  /**
   * The origins of some hosts, each `{ url }` or `{ binding }`. `"*.example.com"` means every host below
   * `example.com`. A longer name wins over a shorter name, and a name without `*` wins over both. All other hosts
   * have `origin`. The middleware ignores this field, and the var `ORIGIN_URL` does not replace these origins.
   *
   * @default none: every host has `origin`
   * @example { "api.example.com": { binding: "API" }, "*.shop.example": { url: "https://shop-origin.example" } }
   */
  readonly origins?: OriginsInput | undefined;
  /**
   * Whether the origin gets the host and the scheme that the client used, in `X-Forwarded-Host` and
   * `X-Forwarded-Proto`, and whether Weir turns URLs of `ORIGIN_URL`, `origin.url` or `origins` in the response's
   * `Location`, `Content-Location`, `Refresh` and `Link` back into URLs of the client's host. A client's own fields of
   * this kind never reach the origin. The middleware ignores this field.
   *
   * @default true
   */
  readonly forwarded?: boolean | undefined;
  /**
   * The store of the counters. `"upstash"`: Upstash Redis. `"durable-object"`: Durable Objects. `"memory"`: each
   * isolate's own memory, for tests only.
   *
   * @default "upstash" if UPSTASH_REDIS_REST_URL is set, otherwise "durable-object"
   */
  readonly store?: "upstash" | "durable-object" | "memory" | undefined;
  /**
   * The clock that determines the current window. `"edge"`: the clock of the Worker, which saves one Redis command in
   * each call. `"store"`: the clock of the store, Redis or the Durable Object, which all isolates share.
   *
   * @default "edge" for Upstash, otherwise "store"
   */
  readonly clock?: "edge" | "store" | undefined;
  /**
   * The first part of every stored key: 1 to 64 characters of `A-Z a-z 0-9 . _ -`. Workers with the
   * same prefix and store share the counters of rules with the same name. If the var `WEIR_PREFIX`
   * is set, it replaces this prefix.
   *
   * @default "weir"
   */
  readonly prefix?: string | undefined;
  /**
   * The maximum time that a decision waits for the store, in milliseconds: a whole number from 1 to 30000. After this
   * time, the request is undecided, and the rule's `onError` applies. The functions in `custom` run before the call
   * to the store. They may take up to `timeoutMs` in addition.
   *
   * @default 1000
   */
  readonly timeoutMs?: number | undefined;
  /**
   * The headers that show clients their quotas. `"draft-11"`: RateLimit and RateLimit-Policy of the IETF draft.
   * `"legacy"`: X-RateLimit-*. `"both"`: all of these, in a form that clients of older drafts read too. `"none"`: no
   * headers.
   *
   * @default "draft-11"
   */
  readonly headers?: "draft-11" | "legacy" | "both" | "none" | undefined;
  /**
   * The number of leading bits of an IPv6 address that identify a client: a whole number from 1 to 128. A home or a
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
   * The path at which a client reads with GET what its requests would find, such as `"/rate-limit"`: segments of `A-Z a-z 0-9 . _ ~
   * -`, but not `.` or `..`, at most 256 characters, no `/` at the end, not below `/_weir`. Weir answers it, charges
   * nothing, and forwards no GET to this path.
   *
   * @default none
   * @example "/rate-limit"
   */
  readonly quotaPath?: string | undefined;
  /**
   * The maximum number of log lines about denials that an isolate writes in each second: a whole number from 0 to
   * 1000. One more line has the number of further denials. 0: no line.
   *
   * @default 10
   */
  readonly denialLog?: number | undefined;
  /**
   * The verification of the tokens whose claims are keys (`"jwt:CLAIM"`). Set either `secret` or `jwks`.
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
   * The `analytics_engine_datasets` binding in wrangler.toml to which Weir writes each decision of a rule.
   *
   * @default none
   * @example { binding: "USAGE" }
   */
  readonly usage?: { readonly binding: string } | undefined;
  /**
   * Your own functions: `keys` for each key `custom:NAME` of the rules, `costs` for each cost `custom:NAME`, `settle`
   * for each `settle: "custom:NAME"`, and `responses` for each `response: "custom:NAME"`. No other field of a
   * configuration may be a function.
   *
   * @default no functions, so `custom:NAME` in a rule for HTTP requests is a fault
   * @example { keys: { plan: (request, { env }) => env.PLANS.get(request.headers.get("x-api-key")) } }
   */
  readonly custom?: CustomInput | undefined;
}

/** The allowed values of `prefix` and of the var `WEIR_PREFIX`, for messages. */
export const PREFIX = "1 to 64 characters of A-Z, a-z, 0-9, -, _ and .";
const PREFIX_PATTERN = /^[A-Za-z0-9._-]{1,64}$/;

/** Whether a text can be the first part of every stored key. */
export function isPrefix(text: string): boolean {
  return PREFIX_PATTERN.test(text);
}

/**
 * A checked configuration: every value is valid, and every default is filled in.
 *
 * @typeParam RuleName the names of the rules, as literal types
 */
export interface Config<RuleName extends string = string>
  extends Readonly<Omit<v.InferOutput<typeof ConfigFields>, "rules">> {
  readonly rules: readonly Rule<RuleName>[];
  /**
   * Whether any rule sends quotas to the origin, in request headers that clients must not forge. The value depends
   * neither on the rules of a single request nor on the deployment's mode.
   */
  readonly tellsOrigin?: boolean;
}

/** The names of a configuration's rules. */
export type RuleNameOf<C extends Config | ConfigInput> = C["rules"] extends infer Rules
  ? Rules extends readonly { readonly name: infer Name extends string }[]
    ? Name
    : Rules extends Readonly<
          Record<string, readonly { readonly name: infer Name extends string }[]>
        >
      ? Name
      : never
  : never;

const QUOTA_PATH = faultText(
  'a path such as "/rate-limit", not below /_weir: segments of A-Z, a-z, 0-9, ., _, ~ and -, at most 256 characters, no segment . or .., no / at the end',
);

/** The schema of each field of a configuration. */
export const configFields = {
  rules: RulesSchema,
  origin: v.optional(OriginSchema),
  origins: v.optional(OriginsSchema),
  forwarded: v.optional(boolean(), true),
  store: v.optional(oneOf("upstash", "durable-object", "memory")),
  clock: v.optional(oneOf("edge", "store")),
  prefix: v.optional(textMatching(PREFIX_PATTERN, PREFIX), "weir"),
  timeoutMs: v.optional(integer(1, 30_000), 1000),
  headers: v.optional(oneOf("draft-11", "legacy", "both", "none"), "draft-11"),
  ipv6Prefix: v.optional(integer(1, 128), 64),
  caseSensitivePaths: v.optional(boolean(), false),
  quotaPath: v.optional(
    textMatching(/^(?!.{257})(?!\/_weir(\/|$))(\/(?!\.{1,2}(\/|$))[A-Za-z0-9._~-]+)+$/, QUOTA_PATH),
  ),
  denialLog: v.optional(integer(0, 1000), 10),
  jwt: v.optional(JwtSchema),
  nativeLimiter: v.optional(NativeLimiterSchema),
  usage: v.optional(UsageSchema),
  custom: v.optional(CustomSchema),
} satisfies { [Field in keyof ConfigInput]-?: v.GenericSchema<ConfigInput[Field], unknown> };

const ConfigFields = fields(configFields);

/**
 * The only source of a configuration's defaults, bounds and messages. The input is {@link ConfigInput}, and the
 * output is {@link Config}.
 */
export const ConfigSchema = v.pipe(
  ConfigFields,
  // This check must come before the transformation: the paths of faults contain the names of files, which the
  // transformation removes.
  checkRules(),
  v.transform(toCheckedConfig),
);

function toCheckedConfig(config: v.InferOutput<typeof ConfigFields>): Config {
  const rules = flatRules(config.rules);
  return { ...config, rules, ...(rules.some(tellsOrigin) && { tellsOrigin: true }) };
}
