import * as v from "valibot";
import type { ConfigInput } from "./config-input.ts";
import { type CustomFunctions, CustomSchema, checkCustomFunctions } from "./custom.ts";
import { boolean, fields, integer, oneOf, textMatching } from "./fields.ts";
import { type JwtConfig, JwtSchema } from "./jwt.ts";
import { type NativeLimiterInput, NativeLimiterSchema } from "./limit-fields.ts";
import { type OriginConfig, OriginSchema, type Origins, OriginsSchema } from "./origin.ts";
import type { Rule } from "./rule.ts";
import { checkClaims, flatRules, RulesSchema } from "./rules.ts";

export type { ConfigInput } from "./config-input.ts";

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
export interface Config<RuleName extends string = string> {
  readonly rules: readonly Rule<RuleName>[];
  readonly origin?: OriginConfig | undefined;
  readonly origins?: Origins | undefined;
  readonly store?: "upstash" | "durable-object" | "memory" | undefined;
  readonly clock: "redis" | "edge";
  readonly prefix: string;
  readonly timeoutMs: number;
  readonly headers: "draft-11" | "legacy" | "both" | "none";
  readonly ipv6Prefix: number;
  readonly caseSensitivePaths: boolean;
  readonly denialLog: number;
  readonly serverTiming: boolean;
  readonly jwt?: JwtConfig | undefined;
  readonly nativeLimiter?: NativeLimiterInput | undefined;
  readonly custom?: CustomFunctions | undefined;
  /**
   * Whether any rule sends quotas to the origin, in request headers that clients must not be able
   * to forge. The value does not depend on which rules apply to a request or on the deployment's
   * mode.
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

/** The schema of each field of a configuration. */
export const configFields = {
  rules: RulesSchema,
  origin: v.optional(OriginSchema),
  origins: v.optional(OriginsSchema),
  store: v.optional(oneOf("upstash", "durable-object", "memory")),
  clock: v.optional(oneOf("redis", "edge"), "redis"),
  prefix: v.optional(textMatching(PREFIX_PATTERN, PREFIX), "weir"),
  timeoutMs: v.optional(integer(1, 30_000), 1000),
  headers: v.optional(oneOf("draft-11", "legacy", "both", "none"), "draft-11"),
  ipv6Prefix: v.optional(integer(1, 128), 64),
  caseSensitivePaths: v.optional(boolean(), false),
  denialLog: v.optional(integer(0, 1000), 10),
  serverTiming: v.optional(boolean(), false),
  jwt: v.optional(JwtSchema),
  nativeLimiter: v.optional(NativeLimiterSchema),
  custom: v.optional(CustomSchema),
};

const ConfigFields = fields(configFields);

/**
 * This schema is the only source of a configuration's defaults, bounds and messages. Its input is
 * {@link ConfigInput}, and its output is {@link Config}.
 */
export const ConfigSchema = v.pipe(
  ConfigFields,
  // The paths of faults contain the names of files, so these checks must come before the
  // transformation, which removes the names.
  checkClaims(),
  checkCustomFunctions(),
  v.transform(toCheckedConfig),
);

function toCheckedConfig(config: v.InferOutput<typeof ConfigFields>): Config {
  const rules = flatRules(config.rules);
  // A rule for programs has no request whose headers could change.
  const tellsOrigin = rules.some(
    (rule) => rule.for === "all" && (rule.mode === "mark" || rule.tellOrigin),
  );
  return { ...config, rules, ...(tellsOrigin && { tellsOrigin }) };
}
