import { nearestName } from "../../src/config/explain/nearest-name.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { LocalFinding } from "../finding.ts";

/** If hosts select the tiers, warns of each tier whose host is not in the rule's `match.hosts`. */
export function tierHostWarnings({ name, match, tiers }: Rule, place: string): LocalFinding[] {
  const { hosts } = match;
  const [[only] = [], ...others] = tiers?.by ?? [];
  if (!tiers || !hosts || only?.kind !== "host" || others.length > 0) return [];
  const unmatched = [...tiers.windows.keys()].filter(
    (tier) => !hosts.some((host) => host === tier || matchesBelow(host, tier)),
  );
  return unmatched.map((tier) => {
    const nearest = nearestName(tier, hosts);
    return {
      code: "tier-never-applies",
      severity: "warning",
      path: `${place}.tiers.limits[${JSON.stringify(tier)}]`,
      message: `No request of the rule "${name}" has this tier, because match.hosts does not contain the host ${tier}`,
      cure: nearest
        ? `Write the tier ${JSON.stringify(nearest)}, or add the host to match.hosts`
        : "Correct the host, add it to match.hosts, or remove the tier",
    };
  });
}

function matchesBelow(host: string, tier: string): boolean {
  return host.startsWith("*.") && tier.endsWith(host.slice(1));
}
