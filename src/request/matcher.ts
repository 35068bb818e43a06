import type { Rule } from "../config/rule.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { type Condition, conditionsOf } from "./conditions.ts";
import { type PathMatch, RouteTable } from "./route-table.ts";

/** A rule that matches a request, and the path that matched the rule. */
export interface RuleMatch extends PathMatch {
  readonly rule: Rule;
}

/** A condition that was tested, for an explanation. */
export interface TestedCondition extends Pick<Condition, "field" | "named"> {
  /** Whether it is a condition of `match.except`. */
  readonly isException: boolean;
  /** Undefined if it is unknown: see `ConditionTest`. */
  readonly holds: boolean | undefined;
}

/**
 * Receives each condition that was tested, up to the one that decides. Of a rule without a route that matches the
 * path, no condition is tested.
 */
export type MatchTrace = (rule: Rule, tested: TestedCondition) => void;

/** @returns every rule that matches a request, in the order of the rules */
export type Matcher = (request: CanonicalRequest, trace?: MatchTrace) => RuleMatch[];

/** Creates a function that returns the matching rules of a configuration for each request. */
export function createMatcher(rules: readonly Rule[], caseSensitivePaths: boolean): Matcher {
  const routes = new RouteTable(rules, caseSensitivePaths);
  const tests = rules.map(({ match }) => ({
    conditions: conditionsOf(match),
    exceptions: match.except && conditionsOf(match.except),
  }));
  return function matchRules(request, trace) {
    const { selected, excepted } = routes.find(request);
    const matches: RuleMatch[] = [];
    for (const [index, { path, params }] of selected) {
      const rule = rules[index] as Rule;
      const { conditions, exceptions } = tests[index] as (typeof tests)[number];
      if (trace && rule.match.paths) {
        trace(rule, { ...PATHS, holds: request.isUnambiguous || undefined });
      }
      if (request.isPreflight && isRefusedPreflight(rule, trace)) continue;
      // If it is unknown whether a condition holds, `match` counts the request, and `except` does not except it.
      if (conditions.length > 0 && !allHold(rule, conditions, request, false, trace)) continue;
      if (exceptions) {
        const isExceptedPath = excepted.has(index);
        if (isExcepted(rule, exceptions, request, isExceptedPath, trace)) continue;
      }
      matches.push({ rule, path, params });
    }
    return matches;
  };
}

const PATHS = { field: "paths", isException: false } as const;

/** Whether a rule ignores preflights. Only rules that name OPTIONS count them. */
function isRefusedPreflight(rule: Rule, trace: MatchTrace | undefined): boolean {
  if (rule.match.methods?.includes("OPTIONS")) return false;
  trace?.(rule, { field: "methods", isException: false, holds: false });
  return true;
}

function isExcepted(
  rule: Rule,
  conditions: readonly Condition[],
  request: CanonicalRequest,
  matchesPath: boolean,
  trace: MatchTrace | undefined,
): boolean {
  if (rule.match.except?.paths) {
    // An origin may read an ambiguous path differently than Weir. If an exception matched such a
    // path, clients could bypass the rule.
    const holds = matchesPath && (request.isUnambiguous || undefined);
    trace?.(rule, { ...PATHS, isException: true, holds });
    if (!holds) return false;
  }
  return allHold(rule, conditions, request, true, trace);
}

/** Tests conditions up to the first that does not hold. If it is unknown, only an exception does not hold. */
function allHold(
  rule: Rule,
  conditions: readonly Condition[],
  request: CanonicalRequest,
  isException: boolean,
  trace: MatchTrace | undefined,
): boolean {
  for (const condition of conditions) {
    const holds = condition.test(request);
    if (trace) trace(rule, { ...condition, isException, holds });
    if (holds === false || (isException && holds === undefined)) return false;
  }
  return true;
}
