import type { Conditions } from "../config/match.ts";
import type { Rule } from "../config/rule.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { type ConditionTest, createConditionTest } from "./conditions.ts";
import { type PathMatch, RouteTable } from "./route-table.ts";

/** A rule that matches a request, and the path that matched the rule. */
export interface RuleMatch extends PathMatch {
  readonly rule: Rule;
}

/** @returns every rule that matches a request, in the order of the rules */
export type Matcher = (request: CanonicalRequest) => RuleMatch[];

/** Creates a function that returns the matching rules of a configuration for each request. */
export function createMatcher(rules: readonly Rule[], caseSensitivePaths: boolean): Matcher {
  const routes = new RouteTable(rules, caseSensitivePaths);
  const matchTests = rules.map(({ match }) => createConditionTest(match));
  const exceptTests = rules.map(({ match }) => match.except && createConditionTest(match.except));
  return function matchRules(request) {
    const { selected, excepted } = routes.find(request);
    const matches: RuleMatch[] = [];
    for (const [index, { path, params }] of selected) {
      const rule = rules[index] as Rule;
      if (!matchesConditions(rule, request)) continue;
      const { except } = rule.match;
      const isExcept = exceptTests[index];
      if (except && isExcepted(except, request, excepted.has(index), isExcept)) continue;
      // If it is unknown whether the conditions hold, the rule counts the request.
      if (matchTests[index]?.(request) === false) continue;
      matches.push({ rule, path, params });
    }
    return matches;
  };
}

function matchesConditions({ match }: Rule, request: CanonicalRequest): boolean {
  if (request.isPreflight && !match.methods?.includes("OPTIONS")) return false;
  return matchesHost(match, request) && matchesMethod(match, request);
}

function isExcepted(
  except: Conditions,
  request: CanonicalRequest,
  matchesPath: boolean,
  test: ConditionTest | undefined,
): boolean {
  // An origin may read an ambiguous path differently than Weir. If an exception matched such a
  // path, clients could bypass the rule.
  const isExceptedPath = !except.paths || (matchesPath && request.isUnambiguous);
  if (!isExceptedPath || !matchesHost(except, request) || !matchesMethod(except, request)) {
    return false;
  }
  // If it is unknown whether the conditions hold, the request is not excepted.
  return !test || test(request) === true;
}

/** Whether conditions on the host hold. */
export function matchesHost({ hosts }: Conditions, { host }: CanonicalRequest): boolean {
  if (!hosts) return true;
  return hosts.some((pattern) =>
    pattern.startsWith("*.") ? host.endsWith(pattern.slice(1)) : host === pattern,
  );
}

/** Whether conditions on the method hold. */
export function matchesMethod({ methods }: Conditions, request: CanonicalRequest): boolean {
  return !methods || methods.includes(request.method) || methods.includes(request.sentMethod);
}
