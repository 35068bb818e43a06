import type { Conditions, Match } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import {
  isLiteral,
  routeCovers,
  routesDisjoint,
  type Segments,
  segmentsOf,
} from "./route-coverage.ts";

/** One host, method and route of a rule. Undefined: the rule matches any. */
interface Cell {
  readonly host: string | undefined;
  readonly method: string | undefined;
  readonly route: Segments | undefined;
}

/** Conditions with their routes split into segments, once for all comparisons. */
interface SplitConditions {
  readonly conditions: Conditions;
  readonly routes: readonly Segments[] | undefined;
}

/** Answers which rules provably apply to every request that another rule applies to. */
export interface Coverage {
  /**
   * Whether one of `others` provably applies to each request that `rule` applies to. It may be a different one
   * for each route. False also if there is no proof.
   *
   * @param others a list that is passed for many rules: it is grouped only once
   * @param accepts which of `others` are considered; all by default
   */
  isCovered(rule: Rule, others: readonly Rule[], accepts?: (other: Rule) => boolean): boolean;
  /** Whether `except` provably excludes every request that the other conditions match. */
  isExceptedWhole(match: Match): boolean;
}

/**
 * Compares the texts of conditions. Sample requests would prove nothing: a sample may miss a pattern such as
 * `:id{[a-z]+}`, and says nothing about other paths.
 */
export function createCoverage(caseSensitive: boolean): Coverage {
  const splitOnce = new WeakMap<Conditions, SplitConditions>();
  const splitRoutes = (conditions: Conditions): SplitConditions => {
    const before = splitOnce.get(conditions);
    if (before) return before;
    const routes = conditions.paths?.flatMap((path) => segmentsOf(path, caseSensitive));
    const split = { conditions, routes };
    splitOnce.set(conditions, split);
    return split;
  };

  const includes = (
    { conditions: { hosts, methods }, routes }: SplitConditions,
    cell: Cell,
  ): boolean =>
    (!hosts || hosts.some((host) => cell.host !== undefined && hostCovers(host, cell.host))) &&
    (!methods || (cell.method !== undefined && methodsCover(methods, cell.method))) &&
    (!routes ||
      routes.some((route) =>
        cell.route ? routeCovers(route, cell.route, caseSensitive) : isEveryPath(route),
      ));

  const excludes = (
    { conditions: { hosts, methods }, routes }: SplitConditions,
    cell: Cell,
  ): boolean => {
    const { host: cellHost, method: cellMethod, route: cellRoute } = cell;
    return (
      (hosts !== undefined &&
        cellHost !== undefined &&
        !hosts.some((host) => hostCovers(host, cellHost) || hostCovers(cellHost, host))) ||
      (methods !== undefined &&
        cellMethod !== undefined &&
        !methods.some((method) => asGet(method) === asGet(cellMethod))) ||
      (routes !== undefined &&
        cellRoute !== undefined &&
        routes.every((route) => routesDisjoint(route, cellRoute, caseSensitive)))
    );
  };

  const isWithin = (narrow: Conditions, wide: Conditions): boolean =>
    cellsOf(splitRoutes(narrow)).every((cell) => includes(splitRoutes(wide), cell));

  const applies = ({ match: other }: Rule, { except }: Match, cell: Cell): boolean =>
    // A preflight request matches only a rule that names OPTIONS.
    (cell.method !== "OPTIONS" || other.methods?.includes("OPTIONS") === true) &&
    includes(splitRoutes(other), cell) &&
    (!other.except ||
      excludes(splitRoutes(other.except), cell) ||
      (except !== undefined && isWithin(other.except, except)));

  const grouped = new WeakMap<readonly Rule[], Map<string, Rule[]>>();
  const candidates = (others: readonly Rule[], { route }: Cell): Rule[] => {
    const byStart =
      grouped.get(others) ??
      Map.groupBy(others, (other) => startOf(splitRoutes(other.match).routes));
    grouped.set(others, byStart);
    const start = route && startOf([route]);
    const same = start === undefined || start === ANY_START ? [] : (byStart.get(start) ?? []);
    return [...same, ...(byStart.get(ANY_START) ?? [])];
  };

  return {
    isCovered: (rule, others, accepts = () => true) =>
      cellsOf(splitRoutes(rule.match)).every((cell) =>
        candidates(others, cell).some(
          (other) => accepts(other) && (other === rule || applies(other, rule.match, cell)),
        ),
      ),
    isExceptedWhole: (match) => match.except !== undefined && isWithin(match, match.except),
  };
}

/** Stands for any first segment. No segment contains a slash. */
const ANY_START = "/";

/**
 * The first segment of all paths that match these routes. Rules are grouped by it: comparing each of 10,000
 * rules, the most that are allowed, with every other one would take 13 s.
 */
function startOf(routes: readonly Segments[] | undefined): string {
  const starts = new Set(routes?.map(([first = ""]) => (isLiteral(first) ? first : ANY_START)));
  const [only = ANY_START] = starts;
  return starts.size === 1 ? only : ANY_START;
}

function cellsOf({ conditions, routes }: SplitConditions): Cell[] {
  const { hosts = [undefined], methods = [undefined] } = conditions;
  const each: readonly (Segments | undefined)[] = routes ?? [undefined];
  return hosts.flatMap((host) =>
    methods.flatMap((method) => each.map((route) => ({ host, method, route }))),
  );
}

/** Whether one host includes another. A wildcard stands for at least one label, so not for the domain itself. */
function hostCovers(wide: string, narrow: string): boolean {
  return wide === narrow || (wide.startsWith("*.") && narrow.endsWith(wide.slice(1)));
}

/** Whether methods include one method. GET includes HEAD, but HEAD does not include GET. */
function methodsCover(methods: readonly string[], method: string): boolean {
  return methods.includes(method) || methods.includes(asGet(method));
}

function asGet(method: string): string {
  return method === "HEAD" ? "GET" : method;
}

function isEveryPath(route: Segments): boolean {
  return route.length === 1 && route[0] === "*";
}
