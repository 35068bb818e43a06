import { waitUntil } from "cloudflare:workers";
import { resolveBindings } from "../../../src/config/bindings.ts";
import { type ConfigInput, type CustomKeys, defineConfig } from "../../../src/config/index.ts";
import { createClientLimits } from "../../../src/entry/isolate.ts";
import { LiveOverrides } from "../../../src/overrides/live-overrides.ts";
import { createIdentify } from "../../../src/request/identify.ts";
import type { AppliedRule } from "../../../src/request/rule-applier.ts";

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
  const identify = createIdentify({
    config,
    bindings,
    overrides: new LiveOverrides(),
    background: waitUntil,
    onKeyFailure: () => {},
    onUnreadableCost: () => {},
    limits: createClientLimits(config),
  });

  return async function apply(
    sent: Sent = {},
    url = "https://api.example.com/",
  ): Promise<readonly AppliedRule[]> {
    const headers = { "cf-connecting-ip": "203.0.113.7", ...sent };
    const request = new Request(url, { headers });
    const context = { env: {} as never, ctx: { waitUntil() {} } };
    const identified = await identify(request, { context, arrivedAt: Date.now() });
    return identified?.appliedRules ?? [];
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
