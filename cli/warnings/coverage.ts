import type { NetworkSet } from "../../src/config/address.ts";
import {
  type Conditions,
  type Match,
  type NamedCondition,
  splitRoute,
  type ValuePattern,
} from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { canonicalPath } from "../../src/request/path.ts";
import type { LocalFinding } from "../finding.ts";
import {
  areIncluded,
  type ConditionTexts,
  conditionTextsOf,
  rulePath,
  rulePlaces,
} from "./client-conditions.ts";
import { formatLimit, neverBinds } from "./limits.ts";

/**
 * Returns the conditions of `except`, but without each list that contains all elements of the same
 * list in `match`. Every request that meets `match` also meets such a condition of `except`.
 */
function narrowedExcept({ except = {}, ...match }: Match): Conditions {
  const { headers, query, ips, countries, asns, ...others } = except;
  return {
    ...others,
    ...(headers && !containsValues(headers, match.headers) && { headers }),
    ...(query && !containsValues(query, match.query) && { query }),
    ...(ips && !(match.ips && containsNetworks(ips, match.ips)) && { ips }),
    ...(countries && !containsAll(countries, match.countries) && { countries }),
    ...(asns && !containsAll(asns, match.asns) && { asns }),
  };
}

function containsAll<Item>(wide: readonly Item[], narrow: readonly Item[] | undefined): boolean {
  const items = new Set(wide);
  return narrow?.every((item) => items.has(item)) === true;
}

/** Whether every request that meets the narrow conditions also meets each of the wide ones. */
function containsValues(
  wide: readonly NamedCondition[],
  narrow: readonly NamedCondition[] = [],
): boolean {
  return wide.every(({ name, expected }) =>
    narrow.some((each) => each.name === name && containsExpected(expected, each.expected)),
  );
}

function containsExpected(
  wide: NamedCondition["expected"],
  narrow: NamedCondition["expected"],
): boolean {
  if (typeof wide === "boolean" || typeof narrow === "boolean") {
    return wide === narrow || (wide === true && narrow !== false);
  }
  return narrow.every((pattern) => wide.some((each) => containsPattern(each, pattern)));
}

/** A prefix contains each text, and each longer prefix, that begins with it. */
function containsPattern(wide: ValuePattern, narrow: ValuePattern): boolean {
  if (typeof wide === "string") return wide === narrow;
  return (typeof narrow === "string" ? narrow : narrow.prefix).startsWith(wide.prefix);
}

/** Whether each narrow network is part of a wide network. */
function containsNetworks(wide: NetworkSet, narrow: NetworkSet): boolean {
  const networks = new Set<string>();
  const lengths = new Set<number>();
  for (const [address, bits] of wide) {
    networks.add(`${address.masked(bits)}/${bits}`);
    lengths.add(bits);
  }
  return [...narrow].every(([address, bits]) =>
    [...lengths].some(
      (length) =>
        length <= Math.min(bits, address.bytes.length * 8) &&
        networks.has(`${address.masked(length)}/${length}`),
    ),
  );
}

/** The segments of a route, in the canonical form that the matcher compares with paths. */
type Segments = readonly string[];

/**
 * A pattern that cannot match a slash: letters, digits, character classes, groups and repetitions.
 * Any other pattern may match a slash, and then Hono lets one parameter match several segments of a
 * path.
 */
const WITHIN_SEGMENT =
  /^(?:[\w-]|\\[dw.-]|\[(?:\w(?:-\w)?)+-?\]|\(\?:|[()|?*+]|\{\d+(?:,\d*)?\})+$/;

/** Splits a route into segments. A route with an optional last parameter gives two lists. */
export function segmentsOf(route: string, caseSensitive: boolean): Segments[] {
  const segments = splitRoute(route)
    .flatMap((segment) => {
      if (/^[:*]/.test(segment)) return segment;
      return canonicalPath(`/${segment}`, caseSensitive).path.split("/");
    })
    .filter(Boolean);
  const last = segments.at(-1);
  if (!last?.endsWith("?") || !last.startsWith(":")) return [segments];
  return [segments.slice(0, -1), [...segments.slice(0, -1), last.slice(0, -1)]];
}

/**
 * Whether every path that matches `narrow` provably matches `wide` too. The result is false if
 * there is no proof. For example, two different regular expressions are not compared.
 */
export function routeCovers(wide: Segments, narrow: Segments, caseSensitive: boolean): boolean {
  if (wide.join("/") === narrow.join("/")) return true;
  const covers = (a: string, b: string) => segmentCovers(a, b, caseSensitive);
  if (wide.at(-1) !== "*") {
    return (
      narrow.at(-1) !== "*" &&
      wide.length === narrow.length &&
      wide.every((segment, index) => covers(segment, narrow[index] as string))
    );
  }
  const prefix = wide.slice(0, -1);
  const rest = narrow.at(-1) === "*" ? narrow.slice(0, -1) : narrow;
  // In Hono, `/a/*` includes `/a`, but `/*/*` does not include `/a`.
  if (prefix.at(-1) === "*" && rest.length === prefix.length) return false;
  return (
    prefix.length <= rest.length &&
    prefix.every((segment, index) => covers(segment, rest[index] as string))
  );
}

/** Whether provably no path matches both routes. */
export function routesDisjoint(a: Segments, b: Segments, caseSensitive: boolean): boolean {
  const length = Math.max(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const [one, other] = [a[index], b[index]];
    if (isOpenEnded(one, index === a.length - 1)) return false;
    if (isOpenEnded(other, index === b.length - 1)) return false;
    if (one === undefined || other === undefined) {
      // A pattern that matches the empty text also matches `/`.
      const pattern = patternOf(one ?? other ?? "");
      return pattern === undefined || !matches(pattern, "", caseSensitive);
    }
    if (isLiteral(one) && isLiteral(other) && one !== other) return true;
    if (isLiteral(one) && isExcludedBy(other, one, caseSensitive)) return true;
    if (isLiteral(other) && isExcludedBy(one, other, caseSensitive)) return true;
  }
  return false;
}

/** Whether a segment of a route may match several segments of a path. */
function isOpenEnded(segment: string | undefined, isLast: boolean): boolean {
  if (segment === undefined) return false;
  if (segment === "*") return isLast;
  const pattern = patternOf(segment);
  return pattern !== undefined && !staysWithinSegment(pattern);
}

function isExcludedBy(segment: string, literal: string, caseSensitive: boolean): boolean {
  const pattern = patternOf(segment);
  return pattern !== undefined && !matches(pattern, literal, caseSensitive);
}

function segmentCovers(wide: string, narrow: string, caseSensitive: boolean): boolean {
  if (wide === "*" || wide === narrow) return isLiteral(narrow) || isOneSegment(narrow);
  if (isLiteral(wide)) return false;
  const pattern = patternOf(wide);
  if (pattern !== undefined) {
    if (!staysWithinSegment(pattern)) return false;
    return isLiteral(narrow)
      ? matches(pattern, narrow, caseSensitive)
      : patternOf(narrow) === pattern;
  }
  // A parameter without a pattern matches every segment except the empty segment of the path `/`.
  const narrower = patternOf(narrow);
  if (narrower !== undefined && matches(narrower, "", caseSensitive)) return false;
  return isLiteral(narrow) || (narrow !== "*" && isOneSegment(narrow));
}

function isOneSegment(segment: string): boolean {
  const pattern = patternOf(segment);
  return pattern === undefined || staysWithinSegment(pattern);
}

function isLiteral(segment: string): boolean {
  return !/^[:*]/.test(segment);
}

function patternOf(segment: string): string | undefined {
  return /^:\w+\{(.+)\}$/s.exec(segment)?.[1];
}

function staysWithinSegment(pattern: string): boolean {
  if (!WITHIN_SEGMENT.test(pattern)) return false;
  // Hono adds `^` before and `$` after a pattern. So without a group, `a|b` becomes `^a|b$`, and no
  // alternative has both anchors.
  let depth = 0;
  for (const character of pattern) {
    if (character === "(") depth++;
    if (character === ")") depth--;
    if (character === "|" && depth === 0) return false;
  }
  return true;
}

function matches(pattern: string, text: string, caseSensitive: boolean): boolean {
  return new RegExp(`^(?:${pattern})$`, caseSensitive ? "" : "i").test(text);
}

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

/** Warns of a rule whose `except` or `exempt` covers everything that the rule matches. */
export function neverMatchesWarnings(
  { name, match, exempt }: Rule,
  place: string,
  coverage: Coverage,
): LocalFinding[] {
  if (coverage.isExceptedWhole(match))
    return [neverMatches(name, "except", `${place}.match.except`)];
  if (!exempt || !match.ips || !containsNetworks(exempt.networks, match.ips)) return [];
  return [neverMatches(name, "exempt", `${place}.exempt.ips`)];
}

function neverMatches(name: string, field: "except" | "exempt", path: string): LocalFinding {
  return {
    code: "never-matches",
    severity: "warning",
    path,
    message: `The rule "${name}" counts no request: its ${field} excludes everything that it matches`,
    cure: `Make ${field} narrower, or remove the rule`,
  };
}
