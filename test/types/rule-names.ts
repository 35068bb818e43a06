// `npm run types` compiles this file; nothing runs it. Each @ts-expect-error line is an assertion:
// the compiler reports an error there, or it reports that the comment is not needed.
import { rateLimit, WeirService, weir } from "edge-weir";
import { type Config, defineConfig, type RuleInput } from "edge-weir/config";

const config = defineConfig({
  rules: [
    { name: "login", key: "ip", limit: 5, window: "1m" },
    { name: "search", limits: [{ limit: 33, window: "1m" }] },
  ],
});

class Limits extends WeirService<typeof config> {
  readonly config = config;
}

/** The bindings of another Worker. */
interface CallerEnv {
  readonly LIMITS: Service<Limits>;
}

/** The compiler accepts only the names of the configuration's rules. */
export function acceptsOnlyRuleNames({ LIMITS }: CallerEnv) {
  rateLimit(config, { rule: "login" });
  // @ts-expect-error there is no such rule
  rateLimit(config, { rule: "typo" });

  LIMITS.limit("search", { key: "203.0.113.7" });
  // @ts-expect-error there is no such rule
  LIMITS.limit("typo");
  // @ts-expect-error there is no such rule
  LIMITS.check("typo");
  // @ts-expect-error there is no such rule
  LIMITS.getValue("typo");
  // @ts-expect-error there is no such rule
  LIMITS.reset("typo");
}

/** A configuration without rules has no names. */
export function acceptsNoNameIfThereAreNoRules() {
  // @ts-expect-error there is no such rule
  rateLimit(defineConfig({ rules: [] }), { rule: "typo" });
  // @ts-expect-error there is no such rule
  rateLimit({ rules: [] }, { rule: "typo" });
}

/** If a program creates rules at run time, the compiler cannot know their names. */
export function acceptsAnyNameOfRulesMadeAtRunTime(names: readonly string[], { LIMITS }: OtherEnv) {
  const rules: RuleInput[] = names.map((name) => ({
    name,
    limit: 5,
    window: "1m",
  }));
  const made = defineConfig({ rules });
  rateLimit(made, { rule: names[0] ?? "login" });
  LIMITS.limit("any");
}

/** A service class without the type of its configuration. */
class AnyLimits extends WeirService {
  readonly config = config;
}

interface OtherEnv {
  readonly LIMITS: Service<AnyLimits>;
}

/** Functions that are called without a rule's name accept every configuration. */
export function acceptsEveryConfig(): readonly Config[] {
  weir(config);
  weir(defineConfig({ rules: [] }));
  rateLimit(defineConfig({ rules: [] }));
  return [config, defineConfig({ rules: [] })];
}
