import type { Rule } from "../../src/config/rule.ts";
import type { LocalFinding } from "../finding.ts";
import { formatLimit, neverBinds } from "./limits.ts";

/**
 * The maximum number of rules for the same requests that are compared. Each of them is compared with
 * every other one.
 */
const MAX_COMPARED = 100;

/**
 * Warnings about rules that count the same requests of the same clients as an earlier rule. A rule
 * without conditions is not compared, because a Hono app may apply it to some routes only.
 */
export function duplicateWarnings(rules: readonly Rule[]): LocalFinding[] {
  const groups = new Map<string, { rule: Rule; index: number }[]>();
  for (const [index, rule] of rules.entries()) {
    if (Object.keys(rule.match).length === 0 || rule.mode === "shadow") continue;
    const counted = countedBy(rule);
    groups.set(counted, [...(groups.get(counted) ?? []), { rule, index }]);
  }
  const compared = [...groups.values()].filter((group) => group.length <= MAX_COMPARED);
  return compared.flatMap((group) =>
    group.flatMap(({ rule, index }, position) =>
      idleIn(
        rule,
        index,
        group.filter((_, other) => other !== position),
        group.slice(0, position),
      ),
    ),
  );
}

interface Placed {
  readonly rule: Rule;
  readonly index: number;
}

/**
 * @param others the other rules that count the same requests
 * @param earlier those of them that come before the rule
 */
function idleIn(
  rule: Rule,
  index: number,
  others: readonly Placed[],
  earlier: readonly Placed[],
): LocalFinding[] {
  const place = `rules[${index}]`;
  const same = earlier.find((each) => limitsOf(each.rule) === limitsOf(rule));
  if (same) {
    return [
      {
        code: "same-rule",
        severity: "warning",
        path: place,
        message: `The rule "${rule.name}" counts the same requests with the same limits as the rule "${same.rule.name}"`,
        cure: "Remove one of the two rules",
      },
    ];
  }
  // A rule with a ban or with tiers has an effect even if its own limits deny no request.
  if (rule.banMs !== undefined || rule.tiers) return [];
  const stricter = others.find(
    (other) =>
      !other.rule.tiers &&
      other.rule.spread === rule.spread &&
      rule.windows.every((idle) =>
        other.rule.windows.some(
          (each) =>
            each.limit > 0 &&
            limitsOf(other.rule) !== limitsOf(rule) &&
            neverBinds(idle, each, rule.spread || idle.offsetMs !== 0 || each.offsetMs !== 0),
        ),
      ),
  );
  if (!stricter) return [];
  return [
    {
      code: "limit-never-binds",
      severity: "warning",
      path: place,
      message: `The rule "${rule.name}" (${rule.windows.map(formatLimit).join(", ")}) denies no request, because the rule "${stricter.rule.name}" (${stricter.rule.windows.map(formatLimit).join(", ")}) counts the same requests and denies earlier`,
      cure: "Make its limit lower, or remove the rule",
    },
  ];
}

/** Returns a text that is equal for rules that count the same requests of the same clients. */
function countedBy({ match, key, cost, countStatus, exempt, shards }: Rule): string {
  return JSON.stringify([sorted(match), key, cost, countStatus, exempt, shards]);
}

/** Returns conditions whose lists have one order, because the order has no meaning. */
function sorted({ hosts, methods, paths, except }: Rule["match"]): unknown {
  return [
    ...[hosts, methods, paths].map((list) => list && [...list].sort()),
    except ? sorted(except) : undefined,
  ];
}

function limitsOf({ windows, tiers, spread, banMs }: Rule): string {
  const limits = windows.map(({ policy: _, ...window }) => window);
  return JSON.stringify([limits, tiers && [...tiers.windows], spread, banMs]);
}
