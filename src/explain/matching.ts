import { type DeploymentMode, rulesInMode } from "../config/bindings.ts";
import { type Conditions, type NamedCondition, splitRoute } from "../config/match.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { LiveOverrides } from "../overrides/live-overrides.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { createNameTest } from "../request/lenient-name.ts";
import { createMatcher, type RuleMatch } from "../request/matcher.ts";
import { canonicalPath } from "../request/path.ts";
import { hasUnclearCommas } from "../request/values.ts";
import {
  fieldsWithSecrets,
  type TestedCondition,
  testConditions,
  textsOf,
  valueField,
} from "./conditions.ts";
import { type ExplainedCondition, quoted, shownText } from "./explanation.ts";
import { sentParameters } from "./sent-parameters.ts";

/** The maximum number of routes of all rules together that are compared with one path. */
export const MAX_ROUTES = 1000;
/** The maximum number of segments of all routes together that are compared. */
export const MAX_COMPARISONS = 4000;
/** The maximum lengths of a path and of a route that are compared, in characters. */
export const MAX_LENGTH = 1024;

/** Where a path and a route differ first. */
interface Difference {
  readonly route: string;
  readonly segments: readonly string[];
  /** The number of segments before the difference. */
  readonly equal: number;
}

/**
 * Finds the routes that are nearest to the path of one request. Some configurations have thousands of routes, so
 * the work for all rules together is bounded. The rules after that have no note.
 */
export class NearPaths {
  readonly #sent: readonly string[];
  readonly #isShort: boolean;
  readonly #caseSensitive: boolean;
  #routes = 0;
  #comparisons = 0;

  constructor({ path }: CanonicalRequest, caseSensitive: boolean) {
    this.#isShort = path.length <= MAX_LENGTH;
    this.#sent = this.#isShort ? path.split("/").filter((segment) => segment !== "") : [];
    this.#caseSensitive = caseSensitive;
  }

  /** The number of segments that have been compared. */
  get comparisons(): number {
    return this.#comparisons;
  }

  /**
   * Returns where the path differs from the route that is nearest to it, as a sentence; undefined if their first
   * segments differ, or if the bounds are reached.
   */
  noteOf(routes: readonly string[]): string | undefined {
    if (!this.#isShort) return undefined;
    let nearest: Difference | undefined;
    for (const route of routes) {
      if (this.#routes >= MAX_ROUTES || this.#comparisons >= MAX_COMPARISONS) break;
      this.#routes += 1;
      if (route.length > MAX_LENGTH) continue;
      const difference = this.#differenceFrom(route);
      if (!nearest || this.#isNearer(difference, nearest)) nearest = difference;
    }
    return nearest && this.#describe(nearest);
  }

  #differenceFrom(route: string): Difference {
    const segments = splitRoute(route).filter((segment) => segment !== "");
    const length = Math.min(segments.length, this.#sent.length);
    let equal = 0;
    while (equal < length && this.#fits(segments[equal] as string, this.#sent[equal] as string)) {
      equal += 1;
    }
    return { route, segments, equal };
  }

  #isNearer(one: Difference, other: Difference): boolean {
    const distance = ({ segments }: Difference) => Math.abs(segments.length - this.#sent.length);
    return (
      one.equal > other.equal || (one.equal === other.equal && distance(one) < distance(other))
    );
  }

  #describe({ route, segments, equal }: Difference): string | undefined {
    const [given, wanted] = [this.#sent[equal], segments[equal]];
    const position = `segment ${equal + 1}`;
    const name = shownText(route);
    if (given !== undefined && wanted !== undefined) {
      if (this.#caseSensitive && fitsSegment(wanted, given, false)) {
        return `In ${position} of ${name}, only upper and lower case differ, and caseSensitivePaths is true.`;
      }
      if (equal === 0) return undefined;
      return `The nearest path is ${name}: its ${position} is ${shownText(wanted)}, not ${shownText(given)}.`;
    }
    if (equal === 0) return undefined;
    return given === undefined
      ? `The nearest path is ${name}: the request has no ${position}.`
      : `The nearest path is ${name}: the request has ${position} too, ${shownText(given)}.`;
  }

  /** Whether a segment of the path fits a segment of a route. */
  #fits(segment: string, sent: string): boolean {
    this.#comparisons += 1;
    if (segment === "*" || segment === sent) return true;
    return fitsSegment(segment, sent, this.#caseSensitive);
  }
}

/** Whether a segment of a canonical path fits a segment of a route. */
function fitsSegment(segment: string, sent: string, caseSensitive: boolean): boolean {
  if (!segment.startsWith(":")) {
    return canonicalSegment(segment, caseSensitive) === canonicalSegment(sent, caseSensitive);
  }
  const pattern = /\{(.+)\}/.exec(segment)?.[1];
  return !pattern || new RegExp(`^(?:${pattern})$`, caseSensitive ? "" : "i").test(sent);
}

/** Returns a literal segment in the form of canonical paths, without a slash. */
function canonicalSegment(segment: string, caseSensitive: boolean): string {
  return canonicalPath(`/${segment}`, caseSensitive).path.slice(1);
}

/** The maximum number of sent names that are compared with the name of a condition. */
const MAX_NAMES = 100;
const OTHER_TEXT =
  "Servers that ignore details, such as case, spaces or a second encoding, may read an expected text.";
const EMPTY = "Some servers take an empty value for an absent one.";

/** Returns why it is unknown whether a condition on a header field holds, as a sentence. */
function unclearHeader({ name }: NamedCondition, { headers }: CanonicalRequest): string {
  const value = headers.get(name);
  const fold = (each: string) => each.replace(/[^a-z\d]/g, "_");
  const other = [...headers.keys()].find((each) => each !== name && fold(each) === fold(name));
  if (other !== undefined) return `Some servers do not distinguish ${quoted(other)} from ${name}.`;
  if (value?.trim() === "") return EMPTY;
  if (value !== null && hasUnclearCommas(name, value)) {
    return "The value has a comma, so the field may have been sent twice.";
  }
  return OTHER_TEXT;
}

/** Returns why it is unknown whether a condition on a query parameter holds, as a sentence. */
function unclearParameter({ name }: NamedCondition, request: CanonicalRequest): string {
  if (request.hasHiddenQuery) return "Some servers find a second query in the URL.";
  const sent = sentParameters(request);
  const isNamed = createNameTest(name);
  for (const other of [...sent.keys()].slice(0, MAX_NAMES)) {
    if (other !== name && isNamed(other)) {
      return `Some servers do not distinguish ${quoted(other)} from ${name}.`;
    }
  }
  if (request.search.includes(";")) return 'Some servers separate parameters by ";".';
  const { values, count } = sent.get(name) ?? { values: [], count: 0 };
  if (count > 1) return `The parameter was sent ${count} times.`;
  return values[0] === "" ? EMPTY : OTHER_TEXT;
}

/**
 * Returns why a condition fails although the request nearly fulfils it, or why its result is unknown.
 *
 * @returns undefined if the condition's texts are enough
 */
function noteOf(
  { condition, result, isException }: TestedCondition,
  request: CanonicalRequest,
  nearPaths: NearPaths,
): string | undefined {
  switch (result) {
    case "holds":
      return undefined;
    case "unknown": {
      const effect = isException
        ? "So the exception does not apply."
        : "So the rule counts the request.";
      return `${unknownNote(condition, request)} ${effect}`;
    }
    case "fails":
      return failureNote(condition, request, nearPaths);
    default:
      return result satisfies never;
  }
}

function unknownNote(
  { paths, headers, query, ips, countries, asns }: Conditions,
  request: CanonicalRequest,
): string {
  if (paths) return "Origins may read this path in different ways.";
  if (headers?.[0]) return unclearHeader(headers[0], request);
  if (query?.[0]) return unclearParameter(query[0], request);
  if (ips) return "The request does not show the address of its client.";
  if (countries) {
    return request.cf?.country === "T1"
      ? "Tor hides the country of its users."
      : "Cloudflare does not report the country.";
  }
  if (asns) return "Cloudflare does not report the network.";
  return "Cloudflare does not report the category of the bot.";
}

function failureNote(
  { hosts, methods, paths }: Conditions,
  request: CanonicalRequest,
  nearPaths: NearPaths,
): string | undefined {
  if (paths) return nearPaths.noteOf(paths);
  if (hosts) return hostNote(hosts, request.host);
  if (methods?.includes("HEAD") && request.sentMethod === "GET") {
    return "A rule for GET also counts HEAD, but a rule for HEAD does not count GET.";
  }
  return undefined;
}

function hostNote(hosts: readonly string[], host: string): string | undefined {
  for (const pattern of hosts) {
    if (pattern === `*.${host}`) return `${pattern} does not include ${host} itself.`;
    if (host.endsWith(`.${pattern}`)) return `${pattern} does not include hosts below it.`;
  }
  return undefined;
}

/** Matches the start of a route whose canonical form differs from it at most by case. */
const LITERAL = /^[\w/~-]*/;

/**
 * Returns a function that tests whether a rule's routes may match the path of a request, by the segments before
 * the first parameter or wildcard. The test needs no router. Most rules of a large configuration fail it, and
 * building a router for thousands of routes takes longer than all else in an explanation.
 *
 * @returns a function that returns false only if no route matches
 */
export function createRouteTest(
  { variants, unstrippedVariants }: CanonicalRequest,
  caseSensitivePaths: boolean,
): (routes: readonly string[] | undefined) => boolean {
  const paths = [...variants, ...unstrippedVariants].map((path) => `${path}/`);
  const mayMatch = (route: string): boolean => {
    const start = literalStart(route);
    const folded = caseSensitivePaths ? start : start.toLowerCase();
    return paths.some((path) => path.startsWith(folded));
  };
  return (routes) => routes?.some(mayMatch) ?? true;
}

/** Returns the whole literal segments at the start of a route, with a slash at the end. */
function literalStart(route: string): string {
  const [literal = ""] = LITERAL.exec(route) ?? [];
  const isWhole = literal.length === route.length;
  const start = isWhole ? `${literal}/` : literal.slice(0, literal.lastIndexOf("/") + 1);
  // Empty segments of a route are ignored.
  return start.includes("//") ? start.replace(/\/+/g, "/") : start;
}

/** A rule of the configuration, and whether it matches a request before the client is identified. */
export interface MatchedRule {
  readonly rule: Rule;
  /** The conditions up to the first that fails. */
  readonly conditions: readonly ExplainedCondition[];
  /** The match, with the override of the rule; undefined if the rule does not match. */
  readonly match: RuleMatch | undefined;
  /** The rule in the deployment's mode and with its override; undefined if it is off. */
  readonly active: Rule | undefined;
  /** Why the rule does not match; empty if it matches. */
  readonly why: string;
}

/** What the conditions of all rules are explained with. */
interface MatchFacts {
  readonly request: CanonicalRequest;
  readonly nearPaths: NearPaths;
  /** The fields whose values may be texts of the configuration, such as `headers.x-plan`. */
  readonly secretFields: ReadonlySet<string>;
}

/** Finds the rules that match a request, and for each other rule the first condition that fails. */
export function matchRules(
  { rules, caseSensitivePaths }: Pick<Config, "rules" | "caseSensitivePaths">,
  request: CanonicalRequest,
  mode: DeploymentMode,
  live: LiveOverrides,
  now: number,
): MatchedRule[] {
  const inMode = new Map(rules.map((rule) => [rule, rulesInMode([rule], mode)[0]] as const));
  const candidates = [...inMode.values()].filter(
    (rule) => rule !== undefined && rule.for === "all",
  );
  const mayMatch = createRouteTest(request, caseSensitivePaths);
  const near = new Set((candidates as Rule[]).filter(({ match }) => mayMatch(match.paths)));
  const matches = new Map(
    createMatcher([...near], caseSensitivePaths)(request).map((match) => [match.rule, match]),
  );
  const tested = testConditions(candidates as Rule[], request, caseSensitivePaths, near);
  const facts: MatchFacts = {
    request,
    nearPaths: new NearPaths(request, caseSensitivePaths),
    secretFields: fieldsWithSecrets(tested.values()),
  };
  return rules.map((rule): MatchedRule => {
    const own = inMode.get(rule);
    const active = own && live.ruleOf(own, now);
    const base = { rule, active };
    if (!own) {
      return { ...base, ...withoutMatch([OFF], "WEIR_MODE is off, so no rule applies.") };
    }
    if (own.for === "programs") {
      return { ...base, ...withoutMatch([PROGRAMS], "It counts only calls of programs.") };
    }
    const found = matches.get(own);
    const conditions = explainConditions(rule, tested.get(own) ?? [], facts);
    if (!found) return { ...base, ...withoutMatch(conditions, whyNot(conditions)) };
    const [match] = live.matchesOf([found], now);
    if (match) return { ...base, conditions, match, why: "" };
    return {
      ...base,
      ...withoutMatch([...conditions, OVERRIDE], "An override has turned the rule off."),
    };
  });
}

const OFF: ExplainedCondition = {
  field: "WEIR_MODE",
  result: "fails",
  actual: "off",
  expected: "enforce or shadow",
};
const PROGRAMS: ExplainedCondition = {
  field: "for",
  result: "fails",
  actual: "an HTTP request",
  expected: "a call of a program",
};
const OVERRIDE: ExplainedCondition = {
  field: "override",
  result: "fails",
  actual: "an override that turns the rule off",
  expected: "no such override",
};

function withoutMatch(conditions: readonly ExplainedCondition[], why: string) {
  return { conditions, match: undefined, why };
}

/** Returns the conditions up to the first because of which the rule does not match. */
function explainConditions(
  rule: Rule,
  tested: readonly TestedCondition[],
  { request, nearPaths, secretFields }: MatchFacts,
): ExplainedCondition[] {
  const explained: ExplainedCondition[] = [];
  const lastException = tested.findLast(({ isException }) => isException);
  const isRefused = request.isPreflight && !rule.match.methods?.includes("OPTIONS");
  let isExcepted = true;
  for (const each of tested) {
    const { field, condition, isException, result } = each;
    if (isRefused && field !== "match.paths") break;
    if (isException && !isExcepted) continue;
    const note = noteOf(each, request, nearPaths);
    const texts = textsOf(condition, request, secretFields.has(valueField(field)));
    explained.push({ field, result, ...texts, ...(note && { note }) });
    if (isException) {
      isExcepted = result === "holds";
      if (isExcepted && each === lastException) return explained;
    } else if (result === "fails") return explained;
  }
  return isRefused ? [...explained, preflightCondition(rule)] : explained;
}

function preflightCondition({ match }: Rule): ExplainedCondition {
  return {
    field: "match.methods",
    result: "fails",
    actual: "OPTIONS of a CORS preflight",
    expected: match.methods?.join(", ") ?? "OPTIONS",
    note: "Only rules that name OPTIONS in match.methods count CORS preflights.",
  };
}

function whyNot(conditions: readonly ExplainedCondition[]): string {
  const last = conditions.at(-1);
  if (!last) return "The request does not fulfil match.";
  const { field, actual, expected, note } = last;
  if (field.startsWith("match.except")) {
    return `The request fulfils match.except: ${field.slice("match.except.".length)} is ${actual}.`;
  }
  const texts = `it has ${actual}, and the rule demands ${expected}.`;
  return `The request does not fulfil ${field}: ${texts}${note ? ` ${note}` : ""}`;
}
