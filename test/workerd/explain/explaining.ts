import { resolveBindings } from "../../../src/config/bindings.ts";
import { type ConfigInput, defineConfig, type RuleInput } from "../../../src/config/index.ts";
import { explain } from "../../../src/explain/explain.ts";
import type {
  DescribedRequest,
  ExplainedRule,
  Explanation,
} from "../../../src/explain/explanation.ts";
import { readClients } from "../../../src/limiter/clients.ts";
import { createMemoryStore } from "../../../src/stores/memory-store.ts";

/** Explains requests by a configuration over an empty memory store. */
export function explaining(input: ConfigInput, env: Record<string, unknown> = {}) {
  const config = defineConfig({ store: "memory", ...input });
  const bindings = resolveBindings(config, env);
  const store = createMemoryStore();
  return (described: Partial<DescribedRequest> = {}): Promise<Explanation> =>
    explain(
      { method: "GET", url: "https://api.example.com/", ...described },
      {
        config,
        bindings,
        read: (applied) => readClients(store, applied, config.prefix, Date.now()),
        custom: { env: env as never, ctx: { waitUntil() {} } },
      },
    );
}

/** Explains a request by one rule, and returns the explanation of this rule. */
export async function explainRule(
  fields: Partial<RuleInput>,
  described: Partial<DescribedRequest> = {},
  options: Partial<ConfigInput> = {},
  env: Record<string, unknown> = {},
): Promise<ExplainedRule> {
  const limits = "limits" in fields ? {} : { limit: 5, window: "1m" as const };
  const rule = { name: "api", ...limits, ...fields } as RuleInput;
  const { rules } = await explaining({ ...options, rules: [rule] }, env)(described);
  return rules[0] as ExplainedRule;
}
