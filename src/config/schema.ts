import * as v from "valibot";
import { fields, integer, isRecord, oneOf, parsed } from "./fields.ts";
import { JwtSchema } from "./jwt.ts";
import { NativeLimiterSchema } from "./native-limiter.ts";
import { OriginSchema } from "./origin.ts";
import { pathTo, pathToItem } from "./quota.ts";
import { type Rule, RuleSchema } from "./rule.ts";

export const MAX_RULES = 10_000;

const RULES = `a list of rules, at most ${MAX_RULES}`;
const PREFIX = "1 to 64 of A-Z, a-z, 0-9, -, _ and .";

const Rules = v.pipe(
  v.array(RuleSchema, RULES),
  v.maxLength(MAX_RULES, RULES),
  v.rawCheck(({ dataset, addIssue }) => {
    if (!Array.isArray(dataset.value)) return;
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
        message: `a name of its own; this one is that of rules[${first}]`,
      });
    }
  }),
);

const ConfigFields = fields({
  rules: Rules,
  origin: v.optional(OriginSchema),
  store: v.optional(oneOf("upstash", "durable-object", "memory")),
  clock: v.optional(oneOf("redis", "edge"), "redis"),
  prefix: v.optional(
    parsed((text) => (/^[A-Za-z0-9._-]{1,64}$/.test(text) ? text : undefined), PREFIX),
    "weir",
  ),
  timeoutMs: v.optional(integer(1, 30_000), 1000),
  headers: v.optional(oneOf("draft-11", "legacy", "both", "none"), "draft-11"),
  ipv6Prefix: v.optional(integer(1, 128), 64),
  caseSensitivePaths: v.optional(v.boolean("true or false"), false),
  jwt: v.optional(JwtSchema),
  nativeLimiter: v.optional(NativeLimiterSchema),
});

/**
 * A claim counts only when its token has been verified, so keys that read one need `jwt`. Checked on
 * what is there, typed or not: a fault in one rule is not to hide another's.
 */
const claimsVerifiable = v.rawCheck<v.InferOutput<typeof ConfigFields>>(({ dataset, addIssue }) => {
  const config: unknown = dataset.value;
  if (!isRecord(config) || config.jwt !== undefined || !Array.isArray(config.rules)) return;
  const { rules } = config;
  const message = "a claim only beside jwt, at the top level, which says how tokens are verified";
  for (const [index, rule] of rules.entries()) {
    if (!isRecord(rule)) continue;
    const at = [pathTo(config, "rules"), pathToItem(rules, index)] as const;
    const claim = claimIn(rule.key);
    if (claim) addIssue({ path: [...at, pathTo(rule, "key")], input: claim, message });
    if (!isRecord(rule.tiers)) continue;
    const path = [...at, pathTo(rule, "tiers"), pathTo(rule.tiers, "by")] as const;
    const tierClaim = claimIn(rule.tiers.by);
    if (tierClaim) addIssue({ path: [...path], input: tierClaim, message });
  }
});

/** The first `jwt:CLAIM` of a key expression, as it was written. */
function claimIn(key: unknown): string | undefined {
  if (!Array.isArray(key)) return undefined;
  const claim = key.flat().find((part) => isRecord(part) && part.kind === "jwt");
  return claim && `jwt:${claim.name}`;
}

/** The one source of the configuration's types, defaults and messages. */
export const ConfigSchema = v.pipe(ConfigFields, claimsVerifiable);

type Input = v.InferInput<typeof ConfigSchema>;
type Output = v.InferOutput<typeof ConfigSchema>;

/**
 * The argument of `defineConfig`.
 *
 * @typeParam RuleName the names of the rules, as literal types
 */
export type ConfigInput<RuleName extends string = string> = Readonly<Omit<Input, "rules">> & {
  readonly rules: readonly (Input["rules"][number] & { readonly name: RuleName })[];
};

/**
 * A checked configuration: every value is valid, and every default is filled in.
 *
 * @typeParam RuleName the names of the rules, as literal types
 */
export type Config<RuleName extends string = string> = Readonly<Omit<Output, "rules">> & {
  readonly rules: readonly (Rule & { readonly name: RuleName })[];
};

/** The names of a configuration's rules. */
export type RuleNameOf<C extends Config> = C["rules"][number]["name"];
