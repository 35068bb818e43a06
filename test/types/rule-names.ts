// `npm run types` compiles this file; nothing runs it. Each @ts-expect-error line is an assertion: without an error in
// the next line, the compiler reports the comment.
import { rateLimit, WeirService, weir } from "edge-weir";
import {
  type Config,
  type ConfigInput,
  defineConfig,
  defineRules,
  type RuleInput,
  type RuleNameOf,
} from "edge-weir/config";

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

const loginRules = defineRules([{ name: "login", limit: 5, window: "1m" }]);
const searchRules = defineRules([
  { name: "search", limit: 33, window: "1m" },
  { name: "suggest", limit: 99, window: "1m" },
]);

/** The names of rules in several files stay literal types, in an object of files and in one list. */
export function knowsTheNamesOfRulesInFiles(): void {
  const files = defineConfig({
    rules: { "rules/login.ts": loginRules, "rules/search.ts": searchRules },
  });
  rateLimit(files, { rule: "login" });
  rateLimit(files, { rule: "suggest" });
  // @ts-expect-error there is no such rule
  rateLimit(files, { rule: "typo" });

  const list = defineConfig({ rules: [...loginRules, ...searchRules] });
  rateLimit(list, { rule: "suggest" });
  // @ts-expect-error there is no such rule
  rateLimit(list, { rule: "typo" });

  const none = defineConfig({ rules: { "rules/none.ts": defineRules([]) } });
  // @ts-expect-error there is no such rule
  rateLimit(none, { rule: "typo" });

  const plain = { rules: { "rules/login.ts": loginRules } };
  rateLimit(plain, { rule: "login" });
  // @ts-expect-error there is no such rule
  rateLimit(plain, { rule: "typo" });

  const ofFiles: RuleNameOf<typeof files> = "suggest";
  const ofPlain: RuleNameOf<typeof plain> = "login";
  // @ts-expect-error there is no such rule
  const mistyped: RuleNameOf<typeof plain> = "typo";
  const ofAny: RuleNameOf<ConfigInput> = String(ofFiles + ofPlain + mistyped);
  class Limits extends WeirService<typeof plain> {
    readonly config = plain;
  }
  const call = (limits: Service<Limits>) => limits.limit("login");
  // @ts-expect-error there is no such rule
  const mistypedCall = (limits: Service<Limits>) => limits.limit("typo");
  rateLimit(files, { rule: ofFiles });
  void [ofAny, call, mistypedCall];
}

/** The compiler checks the rules in their file. */
export function checksRulesInTheirFile(): void {
  // @ts-expect-error no such field
  defineRules([{ name: "login", limt: 5, window: "1m" }]);
  // @ts-expect-error a list
  defineRules({ name: "login", limit: 5, window: "1m" });
  // @ts-expect-error a list in a list
  defineConfig({ rules: [loginRules, searchRules] });
  // @ts-expect-error an object of rules
  defineConfig({ rules: { login: { name: "login", limit: 5, window: "1m" } } });
}
