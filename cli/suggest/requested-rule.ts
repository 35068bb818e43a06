import { type ConfigError, defineConfig } from "../../src/config/define.ts";
import { parseAlternatives } from "../../src/config/key-expression.ts";
import { MAX_WINDOWS } from "../../src/config/limits.ts";
import type { Rule, Window } from "../../src/config/rule.ts";
import type { RuleInput } from "../../src/config/rule-input.ts";
import type { Config, ConfigInput } from "../../src/config/schema.ts";
import { formatKey, formatMatch } from "../rule-table.ts";
import { defaultName } from "./default-name.ts";
import { parseMatch } from "./match-notation.ts";
import { RefusedOption } from "./refused-option.ts";

/** The options that describe a rule. */
export interface RuleOptions {
  readonly match?: string;
  readonly key?: readonly string[];
  readonly window?: readonly string[];
  readonly name?: string;
}

/** The rule for which limits are wanted. */
export interface RequestedRule {
  readonly name: string;
  /** As texts, for reports. */
  readonly match: string;
  readonly key: string;
  /** The rule with its windows. Its limits mean nothing. */
  readonly rule: Rule;
  /** The shortest window first. */
  readonly windows: readonly [Window, ...Window[]];
  readonly config: Pick<Config, "caseSensitivePaths" | "ipv6Prefix">;
  /** The fields of the rule, as a configuration has them; undefined for a rule that exists already. */
  readonly input: Pick<RuleInput, "name" | "match" | "key"> | undefined;
  /** The file of the configuration that has the rule. */
  readonly file?: string;
}

const DEFAULT_WINDOWS = ["1m", "1h"];

/**
 * Returns the rule that the options describe. `defineConfig` checks it, so everything that a configuration may
 * have is allowed here.
 *
 * @throws {RefusedOption}
 */
export function requestedRule({ match, key = ["ip"], window, name }: RuleOptions): RequestedRule {
  for (const element of key) checkKey(element);
  const matchInput = match === undefined ? undefined : parseMatch(match);
  const input = {
    name: name ?? defaultName(matchInput),
    ...(matchInput && { match: matchInput }),
    key: key.length === 1 ? (key[0] as string) : key,
  };
  const config = checkedConfig({ ...input, limits: limitsOf(window ?? DEFAULT_WINDOWS) });
  return requestedRuleOf(config.rules[0] as Rule, config, input);
}

export function requestedRuleOf(
  rule: Rule,
  { caseSensitivePaths, ipv6Prefix }: RequestedRule["config"],
  input: RequestedRule["input"],
): RequestedRule {
  const windows = rule.windows.toSorted((one, other) => one.windowMs - other.windowMs);
  return {
    name: rule.name,
    match: formatMatch(rule.match),
    key: formatKey(rule.key),
    rule,
    windows: windows as [Window, ...Window[]],
    config: { caseSensitivePaths, ipv6Prefix },
    input,
  };
}

/** Returns `limits` with the given windows. A limit of 1 is allowed for every rule. */
export function limitsOf(windows: readonly string[]): RuleInput["limits"] {
  if (windows.length > MAX_WINDOWS) {
    throw new RefusedOption(
      `--window has ${windows.length} windows. Allowed: at most ${MAX_WINDOWS}.`,
    );
  }
  return windows.map((window) => ({
    limit: 1,
    window: /^\d{1,15}$/.test(window) ? Number(window) : window,
  }));
}

/** A log has no tokens to verify, and no function can run on its requests. */
function checkKey(element: string): void {
  const part = parseAlternatives(element)?.find(({ kind }) => kind === "jwt" || kind === "custom");
  if (!part || !("name" in part)) return;
  throw new RefusedOption(
    `--key: a log does not state ${part.kind}:${part.name}. Name something that it states, such as ip or header:x-api-key.`,
  );
}

/** @throws {RefusedOption} with the faults of the options */
export function checkedConfig(rule: RuleInput, others: Omit<ConfigInput, "rules"> = {}): Config {
  try {
    return defineConfig({ ...others, rules: [rule] });
  } catch (error) {
    if (!(error instanceof Error) || error.name !== "ConfigError") throw error;
    throw new RefusedOption((error as ConfigError).faults.map(optionFault).join("\n"));
  }
}

/** The options for the fields of a rule. */
const OPTIONS: Readonly<Record<string, string>> = {
  match: "--match",
  key: "--key",
  limits: "--window",
  name: "--name",
};

function optionFault({
  path,
  message,
}: {
  readonly path: string;
  readonly message: string;
}): string {
  const [, field = "", rest = ""] = /^rules\[0\]\.(\w+)(.*)$/s.exec(path) ?? [];
  const option = OPTIONS[field];
  if (!option) return `${path}: ${message}`;
  if (message.includes("has the same window")) return "--window: two windows have the same length";
  const place = field === "match" ? rest.replace(/^\./, "") : "";
  return `${option}${place && ` (${place})`}: ${message}`;
}
