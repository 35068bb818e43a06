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
  const conditions = rules.map(({ match }) => conditionsOf(match));
  const exceptions = rules.map(({ match }) => match.except && conditionsOf(match.except));
  return function matchRules(request, trace) {
    const { selected, excepted } = routes.find(request);
    const matches: RuleMatch[] = [];
    for (const [index, { path, params }] of selected) {
      const rule = rules[index] as Rule;
      const traceRule = trace && ((tested: TestedCondition) => trace(rule, tested));
      if (traceRule && rule.match.paths) {
        const holds = request.isUnambiguous || undefined;
        traceRule({ field: "paths", isException: false, holds });
      }
      if (isRefusedPreflight(rule, request, traceRule)) continue;
      // If it is unknown whether a condition holds, `match` counts the request, and `except` does not except it.
      if (!allHold(conditions[index] ?? [], request, false, traceRule)) continue;
      const except = exceptions[index];
      const isExceptedPath = excepted.has(index);
      if (except && isExcepted(rule, except, request, isExceptedPath, traceRule)) continue;
      matches.push({ rule, path, params });
    }
    return matches;
  };
}

type RuleTrace = (tested: TestedCondition) => void;

/** Whether a request is a preflight, which only rules that name OPTIONS count. */
function isRefusedPreflight(
  { match: { methods } }: Rule,
  { isPreflight }: CanonicalRequest,
  trace: RuleTrace | undefined,
): boolean {
  if (!isPreflight || methods?.includes("OPTIONS")) return false;
  trace?.({ field: "methods", isException: false, holds: false });
  return true;
}

function isExcepted(
  { match: { except } }: Rule,
  conditions: readonly Condition[],
  request: CanonicalRequest,
  matchesPath: boolean,
  trace: RuleTrace | undefined,
): boolean {
  if (except?.paths) {
    // An origin may read an ambiguous path differently than Weir. If an exception matched such a
    // path, clients could bypass the rule.
    const holds = matchesPath && (request.isUnambiguous || undefined);
    trace?.({ field: "paths", isException: true, holds });
    if (!holds) return false;
  }
  return allHold(conditions, request, true, trace);
}

/** Tests conditions up to the first that does not hold. If it is unknown, only an exception does not hold. */
function allHold(
  conditions: readonly Condition[],
  request: CanonicalRequest,
  isException: boolean,
  trace: RuleTrace | undefined,
): boolean {
  for (const { field, named, test } of conditions) {
    const holds = test(request);
    trace?.({ field, ...(named && { named }), isException, holds });
    if (!(holds ?? !isException)) return false;
  }
  return true;
}
