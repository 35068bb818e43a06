import { nearestName } from "../../src/config/explain/nearest-name.ts";
import type { Rule } from "../../src/config/rule.ts";
import { type LoadedConfig, loadConfig } from "../load-config.ts";
import { RefusedOption } from "./refused-option.ts";
import { checkedConfig, limitsOf, type RequestedRule, requestedRuleOf } from "./requested-rule.ts";

/** The number of names that an error lists. */
const MAX_NAMES = 20;

interface ExistingRuleOptions {
  readonly rule: string;
  /** The file of the configuration. */
  readonly config: string;
  /** Other windows than those of the rule. */
  readonly window?: readonly string[] | undefined;
}

/** A configuration that cannot be read or that has faults. */
export class ConfigFileError extends Error {
  override readonly name = "ConfigFileError";
}

/**
 * Returns a rule of a configuration. Its tiers, exemptions and costs do not matter here: all requests that it
 * matches count as one.
 *
 * @throws {RefusedOption | ConfigFileError}
 */
export async function existingRule(options: ExistingRuleOptions): Promise<RequestedRule> {
  const { rule: name, config: file, window } = options;
  const config = configOf(await loadConfig(file), file);
  const rule = config.rules.find((each) => each.name === name);
  if (!rule)
    throw new RefusedOption(`--rule: ${file} has no rule ${name}. ${cureFor(name, config)}`);
  if (rule.for === "programs") {
    throw new RefusedOption(
      `--rule: ${name} counts only calls of programs, which no log has. Name a rule for requests.`,
    );
  }
  const windows = window ? windowsFor(name, window) : rule.windows;
  return { ...requestedRuleOf({ ...rule, windows }, config, undefined), file };
}

function configOf(loaded: LoadedConfig, file: string) {
  if (loaded.kind === "valid") return loaded.config;
  if (loaded.kind === "unreadable") {
    throw new ConfigFileError(`${file} could not be loaded.\n${loaded.error}`);
  }
  const [first] = loaded.faults;
  throw new ConfigFileError(
    `${file} has faults, such as ${first?.path || "the configuration"}: ${first?.message}\nweir check --config ${file} lists all of them.`,
  );
}

/** Windows that begin at multiples of their length after the epoch, whatever the rule's `start` is. */
function windowsFor(name: string, windows: readonly string[]): Rule["windows"] {
  const config = checkedConfig({ name, limits: limitsOf(windows) });
  return (config.rules[0] as Rule).windows;
}

function cureFor(name: string, { rules }: { readonly rules: readonly Rule[] }): string {
  const names = rules.map((each) => each.name);
  const nearest = nearestName(name, names);
  if (nearest !== undefined) return `Did you mean ${nearest}?`;
  const more = names.length - MAX_NAMES;
  const listed = names.slice(0, MAX_NAMES).join(", ");
  return `It has: ${listed || "no rules"}${more > 0 ? ` and ${more} more` : ""}.`;
}
