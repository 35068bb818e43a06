import type { Config } from "../../src/config/schema.ts";
import type { Comparison } from "./report.ts";

export type RuleChange = Comparison["rules"][number]["change"];

/** Returns how each rule differs from the rule of the same name in the other configuration. */
export function ruleChanges(config: Config, against: Config): ReadonlyMap<string, RuleChange> {
  const [now, before] = [contentsOf(config), contentsOf(against)];
  const changes = new Map<string, RuleChange>();
  for (const [rule, content] of now) {
    const other = before.get(rule);
    if (other === undefined) changes.set(rule, "added");
    else changes.set(rule, content === other ? "same" : "changed");
  }
  for (const rule of before.keys()) if (!now.has(rule)) changes.set(rule, "removed");
  return changes;
}

/** Returns each rule as a text, with the settings that change the decisions of all rules. */
function contentsOf({ rules, ipv6Prefix, caseSensitivePaths }: Config): Map<string, string> {
  return new Map(
    rules.map((rule) => [
      rule.name,
      JSON.stringify({ rule, ipv6Prefix, caseSensitivePaths }, replacer),
    ]),
  );
}

/** Without it, a map, a set of networks and a pattern would become an empty object. */
function replacer(_key: string, value: unknown): unknown {
  if (value instanceof RegExp || typeof value === "function") return String(value);
  const isList = typeof value === "object" && value !== null && Symbol.iterator in value;
  return isList ? [...(value as Iterable<unknown>)] : value;
}
