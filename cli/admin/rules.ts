import leven from "leven";
import type { RuleView } from "../../src/admin/operations.ts";
import { printable } from "../doctor/finding.ts";
import { AdminError, EXIT } from "./admin-error.ts";
import type { Connection } from "./connection.ts";

/**
 * Finds a rule of the Worker by its name.
 *
 * @throws {AdminError} with a similar name, or with all names, if there is none
 */
export async function findRule(api: Connection, name: string): Promise<RuleView> {
  return ruleNamed(await fetchRules(api), name);
}

/** Returns all rules of the Worker, with their overrides. */
export async function fetchRules(api: Connection): Promise<readonly RuleView[]> {
  const { rules } = await api.call<{ rules: readonly RuleView[] }>("GET", "rules", "rules");
  return rules;
}

/** @throws {AdminError} with a similar name, or with all names, if there is none */
export function ruleNamed(rules: readonly RuleView[], name: string): RuleView {
  const found = rules.find((each) => each.name === name);
  if (found) return found;
  const [nearest] = rules
    .map((each) => ({ name: each.name, distance: leven(each.name, name) }))
    .sort((a, b) => a.distance - b.distance);
  const isNear = nearest !== undefined && nearest.distance <= Math.max(1, name.length / 3);
  const cure = isNear
    ? `Did you mean ${nearest.name}?`
    : `It has: ${rules.map((each) => each.name).join(", ")}.`;
  throw new AdminError(EXIT.refused, printable(`The Worker has no rule ${name}. ${cure}`));
}
