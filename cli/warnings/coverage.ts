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

/**
 * Finds rules that provably apply to every request that another rule applies to.
 *
 * It compares the texts of conditions. Sample requests would prove nothing: a sample may miss a pattern such
 * as `:id{[a-z]+}`, and says nothing about other paths.
 */
export class Coverage {
  readonly #caseSensitive: boolean;
  readonly #split = new WeakMap<Conditions, SplitConditions>();
  /** For each list of rules, its rules by the first segment of their paths. */
  readonly #byStart = new WeakMap<readonly Rule[], Map<string, Rule[]>>();

  /** @param caseSensitive whether upper and lower case differ in paths */
  constructor(caseSensitive: boolean) {
    this.#caseSensitive = caseSensitive;
  }

  /**
   * Whether one of `others` provably applies to each request that `rule` applies to. It may be a different one
   * for each route. False also if there is no proof.
   *
   * @param others a list that is passed for many rules: it is grouped only once
   * @param accepts which of `others` are considered; all by default
   */
  isCovered(
    rule: Rule,
    others: readonly Rule[],
    accepts: (other: Rule) => boolean = () => true,
  ): boolean {
    return cellsOf(this.#splitRoutes(rule.match)).every((cell) =>
      this.#candidates(others, cell).some(
        (other) => accepts(other) && (other === rule || this.#applies(other, rule.match, cell)),
      ),
    );
  }

  /** Whether `except` provably excludes every request that the other conditions match. */
  isExceptedWhole(match: Match): boolean {
    return match.except !== undefined && this.#isWithin(match, match.except);
  }

  /** Conditions with their routes split into segments. Each is split only once. */
  #splitRoutes(conditions: Conditions): SplitConditions {
    const cached = this.#split.get(conditions);
    if (cached) return cached;
    const routes = conditions.paths?.flatMap((path) => segmentsOf(path, this.#caseSensitive));
    const split = { conditions, routes };
    this.#split.set(conditions, split);
    return split;
  }

  /** The rules of a list whose paths can begin like the route of a cell. */
  #candidates(others: readonly Rule[], { route }: Cell): Rule[] {
    const byStart =
      this.#byStart.get(others) ??
      Map.groupBy(others, (other) => startOf(this.#splitRoutes(other.match).routes));
    this.#byStart.set(others, byStart);
    const start = route && startOf([route]);
    const same = start === undefined || start === ANY_START ? [] : (byStart.get(start) ?? []);
    return [...same, ...(byStart.get(ANY_START) ?? [])];
  }

  #applies({ match: other }: Rule, { except }: Match, cell: Cell): boolean {
    return (
      // A preflight request matches only a rule that names OPTIONS.
      (cell.method !== "OPTIONS" || other.methods?.includes("OPTIONS") === true) &&
      this.#includes(other, cell) &&
      (!other.except ||
        this.#excludes(other.except, cell) ||
        (except !== undefined && this.#isWithin(other.except, except)))
    );
  }

  #isWithin(narrow: Conditions, wide: Conditions): boolean {
    return cellsOf(this.#splitRoutes(narrow)).every((cell) => this.#includes(wide, cell));
  }

  /** Whether every request of a cell provably matches the conditions. */
  #includes(conditions: Conditions, cell: Cell): boolean {
    const { hosts, methods } = conditions;
    const { routes } = this.#splitRoutes(conditions);
    return (
      (!hosts || hosts.some((host) => cell.host !== undefined && hostCovers(host, cell.host))) &&
      (!methods || (cell.method !== undefined && methodsCover(methods, cell.method))) &&
      (!routes ||
        routes.some((route) =>
          cell.route ? routeCovers(route, cell.route, this.#caseSensitive) : isEveryPath(route),
        ))
    );
  }

  /** Whether provably no request of a cell matches the conditions. */
  #excludes(conditions: Conditions, { host, method, route }: Cell): boolean {
    const { hosts, methods } = conditions;
    const { routes } = this.#splitRoutes(conditions);
    return (
      (hosts !== undefined &&
        host !== undefined &&
        !hosts.some((each) => hostCovers(each, host) || hostCovers(host, each))) ||
      (methods !== undefined &&
        method !== undefined &&
        !methods.some((each) => asGet(each) === asGet(method))) ||
      (routes !== undefined &&
        route !== undefined &&
        routes.every((each) => routesDisjoint(each, route, this.#caseSensitive)))
    );
  }
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
