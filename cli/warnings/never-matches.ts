import type { Rule } from "../../src/config/rule.ts";
import type { LocalFinding } from "../finding.ts";
import type { Coverage } from "./coverage.ts";
import { containsNetworks } from "./list-inclusion.ts";

/** Warns of a rule whose `except` or `exempt` covers everything that the rule matches. */
export function neverMatchesWarnings(
  { name, match, exempt }: Rule,
  place: string,
  coverage: Coverage,
): LocalFinding[] {
  if (coverage.isExceptedWhole(match))
    return [neverMatches(name, "except", `${place}.match.except`)];
  if (!exempt || !match.ips || !containsNetworks(exempt.networks, match.ips)) return [];
  return [neverMatches(name, "exempt", `${place}.exempt.ips`)];
}

function neverMatches(name: string, field: "except" | "exempt", path: string): LocalFinding {
  return {
    code: "never-matches",
    severity: "warning",
    path,
    message: `The rule "${name}" counts no request: its ${field} excludes everything that it matches`,
    cure: `Make ${field} narrower, or remove the rule`,
  };
}
