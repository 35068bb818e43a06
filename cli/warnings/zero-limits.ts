import type { Match } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { LocalFinding } from "../finding.ts";

/** Warnings about one rule whose limit is 0. */
export function zeroLimitWarnings(rule: Rule, place: string): LocalFinding[] {
  const { name, windows, cost, mode, tiers, exempt } = rule;
  const zero = windows.findIndex(({ limit }) => limit === 0);
  if (zero === -1 || rule.for === "programs") return [];
  const path = windows.length === 1 ? `${place}.limit` : `${place}.limits[${zero}].limit`;
  if (cost === 0) {
    return [
      {
        code: "zero-cost-of-zero-limit",
        severity: "warning",
        path: `${place}.cost`,
        message: `The rule "${name}" denies no request, because a request with cost: 0 passes even with limit: 0`,
        cure: "Remove cost, if the rule shall deny every request that it matches",
      },
    ];
  }
  const clients = clientsOf(rule.match);
  // If some clients have a tier or an exemption, the rule admits these clients on purpose.
  if (mode !== "enforce" || clients === undefined || tiers || exempt) return [];
  return [
    {
      code: "denies-everybody",
      severity: "warning",
      path,
      message: `The rule "${name}" denies every request${clients}, because its limit is 0`,
      cure: "Write match with the clients or paths to deny, or a limit above 0",
    },
  ];
}

/**
 * Describes the clients of a rule, for messages; undefined unless the rule matches all requests, or
 * all requests over IPv4 or over IPv6.
 */
function clientsOf({ ips, paths, ...others }: Match): string | undefined {
  if (Object.values(others).some((condition) => condition !== undefined)) return undefined;
  if (paths && !paths.some((path) => /^\/?\*$/.test(path))) return undefined;
  if (!ips) return "";
  const families = new Set([...ips].filter(([, bits]) => bits === 0).map(([net]) => net.kind()));
  if (families.size === 2) return "";
  const [family] = families;
  return family && ` of clients with ${family === "ipv4" ? "IPv4" : "IPv6"} addresses`;
}
