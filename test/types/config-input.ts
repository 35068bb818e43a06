// `npm run types` compiles this file; nothing runs it.

import { type Config, type ConfigInput, defineConfig, type RuleInput } from "edge-weir/config";
import type { InferInput, InferOutput } from "valibot";
import type { Rule, RuleSchema } from "../../src/config/rule.ts";
import type { ConfigSchema } from "../../src/config/schema.ts";

/** `true` if both types are identical: the same fields, each optional in both or in neither. */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/**
 * Makes all fields and lists of a type read-only, and turns each text type with suggestions into
 * `string`.
 */
type Plain<T> = [string] extends [T] ? string | PlainPart<Exclude<T, string>> : PlainPart<T>;
type PlainPart<T> = T extends readonly (infer Element)[]
  ? readonly Plain<Element>[]
  : T extends object
    ? { readonly [Field in keyof T]: Plain<T[Field]> }
    : T;

/** The documented types of the input have exactly the fields and values that the schema accepts. */
export const inputs = {
  rule: true satisfies Same<Plain<RuleInput>, Plain<InferInput<typeof RuleSchema>>>,
  config: true satisfies Same<Plain<ConfigInput>, Plain<InferInput<typeof ConfigSchema>>>,
};

/** The documented types of the output have exactly the fields that the schema returns. */
export const outputs = {
  rule: true satisfies Same<keyof Rule, keyof InferOutput<typeof RuleSchema>>,
  config: true satisfies Same<keyof Config, keyof InferOutput<typeof ConfigSchema>>,
};

/** A read-only configuration (`as const`) compiles with every kind of field. */
export const constant = defineConfig({
  rules: [
    {
      name: "api",
      match: {
        hosts: ["api.example.com"],
        methods: ["GET"],
        headers: { "x-plan": ["free", { prefix: "trial-" }], "x-internal": false },
        query: { export: true },
        countries: ["DE"],
        asns: [13335],
        ips: ["192.0.2.0/24"],
        bots: ["AI Crawler", "A Category That Cloudflare Adds"],
        except: { paths: ["/health"], bots: "verified" },
      },
      key: ["header:x-api-key | ip", "path"],
      limits: [
        { limit: 33, window: "1m", capacity: 40 },
        { limit: 90, window: "5m", sliding: true },
        { limit: 900, window: "30m", sliding: 60 },
        { limit: 2000, window: 3600 },
      ],
      count: { status: [200, 201] },
      tiers: { by: "jwt:plan", limits: { pro: { limits: [{ limit: 99, window: "1m" }] } } },
      exempt: { ips: ["192.0.2.1"], headers: { "x-internal": { secret: "INTERNAL" } } },
      response: { status: 429, body: { error: ["too", "many"] }, headers: { "x-reason": "limit" } },
    },
  ],
  jwt: { jwks: "https://issuer.example.com/jwks.json", algs: ["RS256", "ES256"] },
} as const) satisfies Config<"api">;

/** Values from variables compile, although the compiler knows only that each value is a text. */
export function acceptsTexts(name: string, key: string, window: string): Config {
  const shared = { key: "ip", limit: 5, window: "1m", start: "epoch" };
  const rules: RuleInput[] = [{ name, key, limit: 5, window }];
  rules.push({ name: "second", ...shared });
  return defineConfig({ rules });
}

/** The compiler reports each of these faults. */
export function refusesFaults() {
  const rule = { name: "api", limit: 5, window: "1m" } as const;
  // @ts-expect-error a misspelt field
  defineConfig({ rules: [{ ...rule, onEror: "open" }] });
  // @ts-expect-error the configuration has no such field
  defineConfig({ rules: [rule], timeout: 1000 });
  // @ts-expect-error not one of the allowed words
  defineConfig({ rules: [{ ...rule, mode: "dry-run" }] });
  // @ts-expect-error a key is a text
  defineConfig({ rules: [{ ...rule, key: 5 }] });
  // @ts-expect-error a number of an operator is a number
  defineConfig({ rules: [{ ...rule, match: { asns: ["AS13335"] } }] });
  // @ts-expect-error a condition on a header is a boolean, a text, a prefix or a list
  defineConfig({ rules: [{ ...rule, match: { headers: { a: { secret: "A" } } } }] });
  // @ts-expect-error not one of the allowed words
  defineConfig({ rules: [{ ...rule, match: { except: { bots: "all" } } }] });
  // @ts-expect-error a window is a text or a number
  defineConfig({ rules: [{ name: "api", limit: 5, window: {} }] });
  // @ts-expect-error a rule without a name
  defineConfig({ rules: [{ limit: 5, window: "1m" }] });
}

/**
 * The compiler reports a mistake at the field that has it, and only there: also in a list of several
 * rules, and in the rules of files.
 */
export function reportsEachFaultAtItsField() {
  defineConfig({
    rules: [
      { name: "api", limit: 5, window: "1m" },
      {
        name: "search",
        limit: 5,
        window: "1d",
        // @ts-expect-error a misspelt field
        timezone: "Europe/Berlin",
      },
      {
        name: "login",
        // @ts-expect-error a limit is a number
        limit: "5",
        window: "1m",
      },
    ],
  });
  defineConfig({
    rules: {
      "rules/api.ts": [{ name: "api", limit: 5, window: "1m" }],
      "rules/search.ts": [
        {
          name: "search",
          limit: 5,
          window: "1d",
          // @ts-expect-error a misspelt field
          timezone: "Europe/Berlin",
        },
      ],
    },
  });
}
