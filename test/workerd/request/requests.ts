import { resolveBindings } from "../../../src/config/bindings.ts";
import { type ConfigInput, defineConfig } from "../../../src/config/index.ts";
import { type AppliedRule, createIdentifier } from "../../../src/request/applied-rule.ts";
import { type CanonicalRequest, canonicalRequest } from "../../../src/request/canonical-request.ts";
import type { CustomKeys } from "../../../src/request/custom-key.ts";
import { createMatcher } from "../../../src/request/matcher.ts";

/** Header fields of a request from one client, beside those that are given. */
export type Sent = Readonly<Record<string, string>>;

/**
 * A Worker's request path as far as who is counted.
 *
 * @param rules each in addition to a name and a quota of 5 a minute
 */
export function identifying(
  rules: readonly object[],
  options: Partial<ConfigInput> = {},
  { env = {}, keys }: { env?: Record<string, unknown>; keys?: CustomKeys } = {},
) {
  const config = defineConfig({
    ...options,
    rules: rules.map((fields, index) => ({
      name: `r${index}`,
      ...("limits" in fields ? {} : { limit: 5, window: "1m" }),
      ...fields,
    })),
  });
  const identify = createIdentifier(config, resolveBindings(config, env), keys);
  const matchRules = createMatcher(config.rules, config.caseSensitivePaths);

  return async function subjects(
    sent: Sent = {},
    url = "https://api.example.com/",
  ): Promise<AppliedRule[]> {
    const headers = { "cf-connecting-ip": "203.0.113.7", ...sent };
    const request = new Request(url, { headers });
    const canonical = canonicalRequest(request, config.caseSensitivePaths) as CanonicalRequest;
    return identify(canonical, request, matchRules(canonical));
  };
}

/** Who is counted by the key of a single rule. */
export function identifyingBy(
  key: string | string[],
  options?: Partial<ConfigInput>,
  worker?: { env?: Record<string, unknown>; keys?: CustomKeys },
) {
  const subjects = identifying([{ key }], options, worker);
  return async (sent?: Sent) => (await subjects(sent))[0]?.identity;
}
