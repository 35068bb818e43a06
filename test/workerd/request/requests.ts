import { waitUntil } from "cloudflare:workers";
import { resolveBindings } from "../../../src/config/bindings.ts";
import { type ConfigInput, type CustomKeys, defineConfig } from "../../../src/config/index.ts";
import { type CanonicalRequest, canonicalRequest } from "../../../src/request/canonical-request.ts";
import { CustomCalls } from "../../../src/request/custom-calls.ts";
import { createMatcher } from "../../../src/request/matcher.ts";
import { type AppliedRule, createRuleApplier } from "../../../src/request/rule-applier.ts";
import { createClaimsReader } from "../../../src/request/token.ts";

/** Header fields of a request, in addition to the client's address. */
export type Sent = Readonly<Record<string, string>>;

/**
 * Defines rules, and returns a function that finds the rules that apply to a request, as a Worker
 * does before it decides the request.
 *
 * @param rules the fields of each rule, in addition to a name and a quota of 5 per minute
 * @returns a function that creates a request and returns the rules that apply to it
 */
export function identifying(
  rules: readonly object[],
  options: Partial<ConfigInput> = {},
  { env = {}, keys }: { env?: Record<string, unknown>; keys?: CustomKeys } = {},
) {
  const config = defineConfig({
    ...options,
    ...(keys && { custom: { keys } }),
    rules: rules.map((fields, index) => ({
      name: `r${index}`,
      ...("limits" in fields ? {} : { limit: 5, window: "1m" }),
      ...fields,
    })),
  });
  const bindings = resolveBindings(config, env);
  const { jwt, timeoutMs } = config;
  const readClaims = jwt
    ? createClaimsReader(jwt, bindings.secrets, timeoutMs, waitUntil)
    : async () => undefined;
  const applyRules = createRuleApplier(config, bindings, () => {}, readClaims);
  const matchRules = createMatcher(config.rules, config.caseSensitivePaths);

  return async function apply(
    sent: Sent = {},
    url = "https://api.example.com/",
  ): Promise<AppliedRule[]> {
    const headers = { "cf-connecting-ip": "203.0.113.7", ...sent };
    const request = new Request(url, { headers });
    const canonical = canonicalRequest(request, config.caseSensitivePaths) as CanonicalRequest;
    const context = { env: {} as never, ctx: { waitUntil() {} } };
    const functions = config.custom ?? {};
    const customCalls = new CustomCalls({
      functions,
      request,
      context,
      timeoutMs: config.timeoutMs,
      arrivedAt: Date.now(),
      onKeyFailure: () => {},
    });
    return applyRules(canonical, matchRules(canonical), customCalls);
  };
}

/**
 * Defines one rule with a key.
 *
 * @returns a function that returns the identity of the client that sends a request
 */
export function identifyingBy(
  key: string | string[],
  options?: Partial<ConfigInput>,
  worker?: { env?: Record<string, unknown>; keys?: CustomKeys },
) {
  const apply = identifying([{ key }], options, worker);
  return async (sent?: Sent) => (await apply(sent))[0]?.identity;
}
