import type { Match } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
import { conditionTextsOf } from "./client-conditions.ts";
import { formatLimit, neverBinds } from "./limits.ts";
import { segmentsOf } from "./route-coverage.ts";
import { rulePath, rulePlaces } from "./rule-places.ts";

/**
 * The maximum number of rules for the same requests that the check compares. It compares each of these
 * rules with every other one.
 */
const MAX_COMPARED = 100;

/** A rule, its position among all rules, its path, and its limits as a text, for comparisons. */
interface Placed {
  readonly rule: Rule;
  readonly index: number;
  readonly place: string;
  readonly limits: string;
}

/**
 * Warnings about rules that count the same requests of the same clients as an earlier rule.
 *
 * @param routed whether a Hono app may apply each rule to some of its routes only. Then rules without
 *   conditions may count different requests, and are not compared
 */
export function duplicateWarnings(config: Config, routed: boolean): LocalFinding[] {
  const { rules, caseSensitivePaths } = config;
  const places = rulePlaces(config);
  const groups = new Map<string, Placed[]>();
  for (const [index, rule] of rules.entries()) {
    // A program chooses each rule that it uses, and may use two equal rules for different clients.
    if (rule.mode === "shadow" || rule.for === "programs") continue;
    if (routed && Object.keys(rule.match).length === 0) continue;
    const counted = countedBy(rule, caseSensitivePaths);
    const group = groups.get(counted) ?? [];
    group.push({ rule, index, place: rulePath(places, index), limits: limitsOf(rule) });
    groups.set(counted, group);
  }
  const compared = [...groups.values()].filter((group) => group.length <= MAX_COMPARED);
  return compared.flatMap((group) => group.flatMap((placed) => idleIn(placed, group)));
}

/** @param group all rules that count the same requests */
function idleIn(placed: Placed, group: readonly Placed[]): LocalFinding[] {
  const { rule, index, place, limits } = placed;
  const same = group.find((each) => each.index < index && each.limits === limits);
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
  const stricter = group.find(
    (other) =>
      other.limits !== limits &&
      // A rule that only marks requests denies none of them.
      other.rule.mode === "enforce" &&
      !other.rule.tiers &&
      rule.windows.every((idle) =>
        other.rule.windows.some(
          // A limit of 0 denies everything on purpose.
          (each) => each.limit > 0 && neverBinds(idle, each, !haveOneStart(rule, other.rule)),
        ),
      ),
  );
  if (!stricter) return [];
  return [
    {
      code: "limit-never-binds",
      severity: "warning",
      path: place,
      message: `The rule "${rule.name}" (${rule.windows.map(formatLimit).join(", ")}) ${rule.mode === "mark" ? "marks" : "denies"} no request, because the rule "${stricter.rule.name}" (${stricter.rule.windows.map(formatLimit).join(", ")}) counts the same requests and denies earlier`,
      cure: "Make its limit lower, or remove the rule",
    },
  ];
}

/** Whether the windows of two rules begin at multiples of their lengths after the Unix epoch. */
function haveOneStart(...rules: readonly Rule[]): boolean {
  return rules.every(
    ({ spread, windows }) => !spread && windows.every(({ offsetMs }) => offsetMs === 0),
  );
}

/** Returns a text that is equal for rules that count the same requests of the same clients. */
function countedBy(
  { match, key, cost, count, exempt, shards }: Rule,
  caseSensitive: boolean,
): string {
  return JSON.stringify([sorted(match, caseSensitive), key, cost, count, exempt, shards]);
}

/** Returns conditions with sorted lists, because the order of a list has no meaning. */
function sorted(match: Match, caseSensitive: boolean): unknown {
  const { hosts, methods, paths, except } = match;
  const routes = paths?.flatMap((path) =>
    segmentsOf(path, caseSensitive).map((segments) => `/${segments.join("/")}`),
  );
  return [
    ...[hosts, methods, routes?.includes("/*") ? undefined : routes].map(
      (list) => list && [...new Set(list)].sort(),
    ),
    [...conditionTextsOf(match)],
    except ? sorted(except, caseSensitive) : undefined,
  ];
}

function limitsOf({ windows, tiers, spread, banMs, escalation }: Rule): string {
  const limits = windows.map(({ policy: _, ...window }) => window);
  return JSON.stringify([limits, tiers && [...tiers.windows], spread, banMs, escalation]);
}
