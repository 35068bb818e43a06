import type { Conditions, Match } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import {
  isLiteral,
  routeCovers,
  routesDisjoint,
  type Segments,
  segmentsOf,
} from "./route-coverage.ts";

/** One host, method and route of a rule; undefined where the rule leaves it open. */
interface Cell {
  readonly host: string | undefined;
  readonly method: string | undefined;
  readonly route: Segments | undefined;
}

/** Conditions with their routes divided into segments, once for all comparisons. */
interface Prepared {
  readonly conditions: Conditions;
  readonly routes: readonly Segments[] | undefined;
}

/** Tells which rules provably apply wherever another one does. */
export interface Coverage {
  /**
   * Whether each request that `rule` applies to provably has one of `others` apply to it,
   * perhaps a different one for each route. False may also mean that it cannot be proven.
   *
   * @param others the same list for many rules: it is sorted once
   * @param counts which of them count for this rule; all by default
   */
  isCovered(rule: Rule, others: readonly Rule[], counts?: (other: Rule) => boolean): boolean;
  /** Whether `except` provably takes out all that the rule would apply to. */
  isExceptedWhole(match: Match): boolean;
}

/**
 * Compares conditions by their texts. Sample requests prove nothing: a sample that misses a pattern
 * such as `:id{[a-z]+}` shows no request of its rule, and one path shows none of those around it.
 */
export function createCoverage(caseSensitive: boolean): Coverage {
  const known = new WeakMap<Conditions, Prepared>();
  const prepare = (conditions: Conditions): Prepared => {
    const before = known.get(conditions);
    if (before) return before;
    const routes = conditions.paths?.flatMap((path) => segmentsOf(path, caseSensitive));
    const prepared = { conditions, routes };
    known.set(conditions, prepared);
    return prepared;
  };

  const includes = ({ conditions: { hosts, methods }, routes }: Prepared, cell: Cell): boolean =>
    (!hosts || hosts.some((host) => cell.host !== undefined && hostCovers(host, cell.host))) &&
    (!methods || (cell.method !== undefined && methodsCover(methods, cell.method))) &&
    (!routes ||
      routes.some((route) =>
        cell.route ? routeCovers(route, cell.route, caseSensitive) : isEveryPath(route),
      ));

  const excludes = ({ conditions: { hosts, methods }, routes }: Prepared, cell: Cell): boolean => {
    const { host: itsHost, method: itsMethod, route: itsRoute } = cell;
    return (
      (hosts !== undefined &&
        itsHost !== undefined &&
        !hosts.some((host) => hostCovers(host, itsHost) || hostCovers(itsHost, host))) ||
      (methods !== undefined &&
        itsMethod !== undefined &&
        !methods.some((method) => asGet(method) === asGet(itsMethod))) ||
      (routes !== undefined &&
        itsRoute !== undefined &&
        routes.every((route) => routesDisjoint(route, itsRoute, caseSensitive)))
    );
  };

  const isWithin = (narrow: Conditions, wide: Conditions): boolean =>
    cellsOf(prepare(narrow)).every((cell) => includes(prepare(wide), cell));

  const applies = ({ match: other }: Rule, { except }: Match, cell: Cell): boolean =>
    // Only a rule that names OPTIONS applies to preflight requests.
    (cell.method !== "OPTIONS" || other.methods?.includes("OPTIONS") === true) &&
    includes(prepare(other), cell) &&
    (!other.except ||
      excludes(prepare(other.except), cell) ||
      (except !== undefined && isWithin(other.except, except)));

  const sorted = new WeakMap<readonly Rule[], Map<string, Rule[]>>();
  const candidates = (others: readonly Rule[], { route }: Cell): Rule[] => {
    const byStart =
      sorted.get(others) ?? Map.groupBy(others, (other) => startOf(prepare(other.match).routes));
    sorted.set(others, byStart);
    const start = route && startOf([route]);
    const same = start === undefined || start === ANY_START ? [] : (byStart.get(start) ?? []);
    return [...same, ...(byStart.get(ANY_START) ?? [])];
  };

  return {
    isCovered: (rule, others, counts = () => true) =>
      cellsOf(prepare(rule.match)).every((cell) =>
        candidates(others, cell).some(
          (other) => counts(other) && (other === rule || applies(other, rule.match, cell)),
        ),
      ),
    isExceptedWhole: (match) => match.except !== undefined && isWithin(match, match.except),
  };
}

/** No segment: it would begin another one. */
const ANY_START = "/";

/**
 * The first segment that all paths of these routes have. With 10,000 rules, as many as a configuration
 * may have, comparing each with each would take 13 s.
 */
function startOf(routes: readonly Segments[] | undefined): string {
  const starts = new Set(routes?.map(([first = ""]) => (isLiteral(first) ? first : ANY_START)));
  const [only = ANY_START] = starts;
  return starts.size === 1 ? only : ANY_START;
}

function cellsOf({ conditions, routes }: Prepared): Cell[] {
  const { hosts = [undefined], methods = [undefined] } = conditions;
  const each: readonly (Segments | undefined)[] = routes ?? [undefined];
  return hosts.flatMap((host) =>
    methods.flatMap((method) => each.map((route) => ({ host, method, route }))),
  );
}

/** A wildcard stands for one label or more, so it does not include the domain itself. */
function hostCovers(wide: string, narrow: string): boolean {
  return wide === narrow || (wide.startsWith("*.") && narrow.endsWith(wide.slice(1)));
}

/** A HEAD request counts as GET; a GET request does not count as HEAD. */
function methodsCover(methods: readonly string[], method: string): boolean {
  return methods.includes(method) || methods.includes(asGet(method));
}

function asGet(method: string): string {
  return method === "HEAD" ? "GET" : method;
}

function isEveryPath(route: Segments): boolean {
  return route.length === 1 && route[0] === "*";
}
