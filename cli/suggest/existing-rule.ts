import { nearestName } from "../../src/config/explain/nearest-name.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { ConfigFile } from "../replay/replay-inputs.ts";
import { RefusedOption } from "./refused-option.ts";
import { checkedConfig, limitsOf, type RequestedRule, requestedRuleOf } from "./requested-rule.ts";

/** The number of names that an error lists. */
const MAX_NAMES = 20;

/**
 * Returns a rule of a configuration. Its tiers, exemptions and costs do not matter here: all requests that it
 * matches count as one.
 *
 * @param window other windows than those of the rule
 * @throws {RefusedOption}
 */
export function existingRule(
  { file, config }: ConfigFile,
  name: string,
  window?: readonly string[],
): RequestedRule {
  const rule = config.rules.find((each) => each.name === name);
  if (!rule) {
    throw new RefusedOption(`--rule: ${file} has no rule ${name}. ${cureFor(name, config)}`);
  }
  if (rule.for === "programs") {
    throw new RefusedOption(
      `--rule: ${name} counts only calls of programs, which no log has. Name a rule for requests.`,
    );
  }
  const windows = window ? windowsFor(name, window) : rule.windows;
  return { ...requestedRuleOf({ ...rule, windows }, config, undefined), file };
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
