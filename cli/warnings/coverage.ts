import type { Conditions } from "../../src/config/conditions.ts";
import type { Match } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import { areIncluded, type ConditionTexts, conditionTextsOf } from "./client-conditions.ts";
import { narrowedExcept } from "./list-inclusion.ts";
import {
  isLiteral,
  routeCovers,
  routesDisjoint,
  type Segments,
  segmentsOf,
} from "./route-coverage.ts";

/**
 * One host, method and route of a rule. If a field is undefined, the rule matches every host, every
 * method or every route.
 */
interface Cell {
  readonly host: string | undefined;
  readonly method: string | undefined;
  readonly route: Segments | undefined;
  /** The other conditions of the rule. */
  readonly others: ConditionTexts;
}

/**
 * The conditions of a rule, prepared once for all comparisons: the routes as segments, and the
 * other conditions as texts.
 */
interface SplitConditions {
  readonly conditions: Conditions;
  readonly routes: readonly Segments[] | undefined;
  readonly others: ConditionTexts;
}

/**
 * Finds out whether some rules provably apply to every request that a given rule applies to.
 *
 * It compares the texts of conditions. Sample requests would prove nothing, because a sample may
 * not match a pattern such as `:id{[a-z]+}`, and a result for one path is no proof for other paths.
 */
export class Coverage {
  readonly #caseSensitive: boolean;
  readonly #split = new WeakMap<Conditions, SplitConditions>();
  /** For each list of rules, its rules grouped by the first segment of their paths. */
  readonly #byStart = new WeakMap<readonly Rule[], Map<string, Rule[]>>();

  /** @param caseSensitive whether upper and lower case differ in paths */
  constructor(caseSensitive: boolean) {
    this.#caseSensitive = caseSensitive;
  }

  /**
   * Whether `others` provably apply to each request that `rule` applies to. Different rules of
   * `others` may cover different routes of `rule`. The result is false if there is no proof.
   *
   * @param others a list of rules. It is grouped only once, even if it is passed for many rules
   * @param accepts selects the rules of `others` to consider; all by default
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
    return match.except !== undefined && this.#isWithin(match, narrowedExcept(match));
  }

  /** Returns conditions with their routes split into segments. Routes are split only once. */
  #splitRoutes(conditions: Conditions): SplitConditions {
    const cached = this.#split.get(conditions);
    if (cached) return cached;
    const routes = conditions.paths?.flatMap((path) => segmentsOf(path, this.#caseSensitive));
    const split = { conditions, routes, others: conditionTextsOf(conditions) };
    this.#split.set(conditions, split);
    return split;
  }

  /**
   * Returns the rules of a list whose paths can begin with the same segment as the route of a cell.
   */
  #candidates(others: readonly Rule[], { route }: Cell): Rule[] {
    const byStart = this.#byStart.get(others) ?? this.#groupByStart(others);
    this.#byStart.set(others, byStart);
    const start = route && startOf([route]);
    const same = start === undefined || start === ANY_START ? [] : (byStart.get(start) ?? []);
    return [...same, ...(byStart.get(ANY_START) ?? [])];
  }

  #groupByStart(rules: readonly Rule[]): Map<string, Rule[]> {
    const groups = new Map<string, Rule[]>();
    for (const rule of rules) {
      const start = startOf(this.#splitRoutes(rule.match).routes);
      const group = groups.get(start);
      if (group) group.push(rule);
      else groups.set(start, [rule]);
    }
    return groups;
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
    const { routes, others } = this.#splitRoutes(conditions);
    return (
      areIncluded(others, cell.others) &&
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

/** Represents any first segment. A real segment is never a slash. */
const ANY_START = "/";

/**
 * Returns the first segment that all paths of these routes have in common; {@link ANY_START} if
 * there is none. Rules are grouped by this segment, so that a rule is compared with few other
 * rules. For 10,000 rules, the maximum, comparing each rule with every other rule would take 13 s.
 */
function startOf(routes: readonly Segments[] | undefined): string {
  const starts = new Set(routes?.map(([first = ""]) => (isLiteral(first) ? first : ANY_START)));
  const [only = ANY_START] = starts;
  return starts.size === 1 ? only : ANY_START;
}

function cellsOf({ conditions, routes, others }: SplitConditions): Cell[] {
  const { hosts = [undefined], methods = [undefined] } = conditions;
  const each: readonly (Segments | undefined)[] = routes ?? [undefined];
  return hosts.flatMap((host) =>
    methods.flatMap((method) => each.map((route) => ({ host, method, route, others }))),
  );
}

/**
 * Whether the host `wide` matches every host that `narrow` matches. A wildcard matches one label or
 * more, so `*.example.com` does not match `example.com`.
 */
function hostCovers(wide: string, narrow: string): boolean {
  return wide === narrow || (wide.startsWith("*.") && narrow.endsWith(wide.slice(1)));
}

/** Whether a list of methods covers a method. GET includes HEAD, but HEAD does not include GET. */
function methodsCover(methods: readonly string[], method: string): boolean {
  return methods.includes(method) || methods.includes(asGet(method));
}

function asGet(method: string): string {
  return method === "HEAD" ? "GET" : method;
}

function isEveryPath(route: Segments): boolean {
  return route.length === 1 && route[0] === "*";
}
