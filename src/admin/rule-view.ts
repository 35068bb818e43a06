import type { DeploymentMode } from "../config/deployment-mode.ts";
import type { Match } from "../config/match.ts";
import type { Rule } from "../config/rule.ts";
import { formatWindow } from "../config/windows.ts";
import type { Override } from "../overrides/override.ts";
import { formatKey } from "./client-selector.ts";
import type { RuleView } from "./operations.ts";

/** The maximum number of items of a list in `match` that a view shows. */
const MAX_ITEMS = 10;

/**
 * Returns a rule as operators see it.
 *
 * @param applied the rule with its override; undefined if the override has turned the rule off
 * @param override the rule's override
 */
export function ruleViewOf(
  rule: Rule,
  applied: Rule | undefined,
  mode: DeploymentMode,
  override: Override | undefined,
): RuleView {
  const { windows } = applied ?? rule;
  return {
    name: rule.name,
    key: formatKey(rule),
    mode: !applied || mode === "off" ? "off" : mode === "shadow" ? "shadow" : applied.mode,
    configuredMode: rule.mode,
    onError: rule.onError,
    limits: windows.map((window) => ({
      policy: window.policy,
      limit: window.limit,
      window: formatWindow(window),
    })),
    hasTiers: rule.tiers !== undefined,
    hasBan: rule.banMs !== undefined,
    match: rule.for === "programs" ? "only calls of programs" : formatMatch(rule.match),
    ...(override && { override }),
  };
}

/** Formats the methods, hosts and paths. Other conditions may contain secrets, so only their names are shown. */
function formatMatch({ methods, hosts, paths, ...others }: Match): string {
  const names = Object.entries(others).flatMap(([name, value]) =>
    value === undefined ? [] : name,
  );
  const places = [methods, hosts, paths].flatMap((list) => (list ? shortList(list) : []));
  const parts = [places.join(" "), names.length > 0 && `with ${names.join(", ")}`];
  return parts.filter(Boolean).join(" ") || "every request";
}

function shortList(items: Iterable<string>): string {
  const all = [...items];
  const rest = all.length - MAX_ITEMS;
  return all.slice(0, MAX_ITEMS).join(", ") + (rest > 0 ? ` and ${rest} more` : "");
}
