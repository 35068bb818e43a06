import { TrieRouter } from "hono/router/trie-router";
import type { NetworkSet } from "../config/address.ts";
import type { KeyPart } from "../config/key.ts";
import {
  type Conditions,
  type NamedCondition,
  splitRoute,
  type ValuePattern,
} from "../config/match.ts";
import type { Rule } from "../config/rule.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { readClient } from "./headers.ts";
import { LruCache } from "./lru-cache.ts";
import { canonicalPath } from "./path.ts";
import { foldValue, type SentText, type SentValue } from "./sent-values.ts";
import { isAscii } from "./text-folding.ts";
import { hasCredential } from "./values.ts";

export interface RuleMatch extends PathMatch {
  readonly rule: Rule;
}

/** A condition that was tested, for an explanation. */
export interface TestedCondition extends Pick<Condition, "field" | "named"> {
  /** Whether it is a condition of `match.except`. */
  readonly isException: boolean;
  /** Undefined if unknown: see `ConditionTest`. */
  readonly holds: boolean | undefined;
}

/**
 * Receives each tested condition of a rule, up to the one that decides. If no route of the rule matches the path, no
 * condition is tested.
 */
export type MatchTrace = (rule: Rule, tested: TestedCondition) => void;

/** @returns every rule that matches, in the order of the rules */
export type Matcher = (request: CanonicalRequest, trace?: MatchTrace) => RuleMatch[];

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
      // If the result is unknown, `match` counts the request, and `except` does not except it.
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

/** Whether a rule ignores a preflight. Only rules that name OPTIONS count preflights. */
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
    // An origin may read an ambiguous path differently than Weir. If exceptions applied to such a path, clients could
    // bypass the rule.
    const holds = matchesPath && (request.isUnambiguous || undefined);
    trace?.(rule, { ...PATHS, isException: true, holds });
    if (!holds) return false;
  }
  return allHold(rule, conditions, request, true, trace);
}

/** Tests conditions up to the first that fails. An unknown result counts as a failure only in an exception. */
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

// The conditions of a rule, except the paths.

/**
 * Whether a condition holds for a request. The result is unknown (undefined) if the request lacks a value, or if
 * origins may read different values. A client must not avoid a rule by an unknown result. So `match` then counts the
 * request, and `except` does not except it.
 */
export type ConditionTest = (request: CanonicalRequest) => boolean | undefined;

function headerTest({ name, expected }: NamedCondition): ConditionTest {
  if (typeof expected === "boolean") return ({ sent }) => isAsSent(expected, sent.header(name));
  const test = textTest(expected, hasCredential(name));
  // Some servers read the bytes of a header as Latin-1, and others as UTF-8.
  const ascii = expected.filter((pattern) => isAscii(patternText(pattern)));
  const hasWide = ascii.length < expected.length;
  return ({ sent }) => {
    const value = sent.header(name);
    const isUnknown = hasWide && value.text?.isWide && !fitsExactly(value.text, ascii);
    return isUnknown ? undefined : test(value);
  };
}

function queryTest({ name, expected }: NamedCondition): ConditionTest {
  if (typeof expected === "boolean") {
    return ({ sent }) => isAsSent(expected, sent.parameter(name));
  }
  const test = textTest(expected);
  return ({ sent }) => test(sent.parameter(name));
}

function isAsSent(expected: boolean, { isPresent }: SentValue): boolean | undefined {
  return isPresent === undefined ? undefined : isPresent === expected;
}

/**
 * Creates the test for a text. The condition holds only if every origin reads exactly the expected text. If only some
 * origins may read the expected text, the result is unknown.
 *
 * @param isCredential whether the value has a scheme, which many origins ignore
 */
function textTest(
  expected: readonly ValuePattern[],
  isCredential = false,
): (sent: SentValue) => boolean | undefined {
  const folded = expected.map((pattern) => mapPattern(pattern, foldValue));
  const credentials = isCredential ? expected.map(credentialPattern) : [];
  return ({ isPresent, text }) => {
    if (isPresent === false) return false;
    if (text === undefined) return undefined;
    if (fitsExactly(text, expected)) return true;
    const mayFit =
      text.folded.some((each) => fitsAny(each, folded)) ||
      (text.credential !== "" && fitsAny(text.credential, credentials));
    return mayFit ? undefined : false;
  };
}

function fitsExactly({ exact }: SentText, patterns: readonly ValuePattern[]): boolean {
  return exact.length > 0 && exact.every((text) => fitsAny(text, patterns));
}

function fitsAny(text: string, patterns: readonly ValuePattern[]): boolean {
  return patterns.some((pattern) =>
    typeof pattern === "string" ? text === pattern : text.startsWith(pattern.prefix),
  );
}

function patternText(pattern: ValuePattern): string {
  return typeof pattern === "string" ? pattern : pattern.prefix;
}

function mapPattern(pattern: ValuePattern, map: (text: string) => string): ValuePattern {
  return typeof pattern === "string" ? map(pattern) : { prefix: map(pattern.prefix) };
}

/**
 * Returns the part of an expected value after the scheme. If a prefix is only a scheme, such as `Bearer`, the result
 * matches every credential, because many origins ignore the scheme.
 */
function credentialPattern(pattern: ValuePattern): ValuePattern {
  const text = patternText(pattern);
  if (typeof pattern !== "string" && /^[a-z]+:?\s*$/i.test(text)) return { prefix: "" };
  return mapPattern(pattern, () => foldValue(text.slice(text.lastIndexOf(" ") + 1) || text));
}

/** One condition of a rule. */
export interface Condition {
  /**
   * The field of the condition, such as `hosts`; or a field and the name of a header or a parameter: `query.export`.
   */
  readonly field: string;
  /** The header or the query parameter. */
  readonly named?: NamedCondition;
  readonly test: ConditionTest;
}

/** Returns all conditions except the paths, in the order in which the matcher tests them. */
export function conditionsOf(conditions: Conditions): Condition[] {
  const { hosts, methods, headers = [], query = [], ips, countries, asns, bots } = conditions;
  const single = (field: string, test: ConditionTest | undefined | false) =>
    test ? [{ field, test }] : [];
  return [
    ...single("hosts", hosts && hostTest(hosts)),
    ...single("methods", methods && methodTest(methods)),
    ...headers.map((named) => ({ field: `headers.${named.name}`, named, test: headerTest(named) })),
    ...query.map((named) => ({ field: `query.${named.name}`, named, test: queryTest(named) })),
    ...single("ips", ips && ((request) => isInNetworks(request, ips))),
    ...single("countries", countries && countryTest(new Set(countries))),
    ...single("asns", asns && asnTest(new Set(asns))),
    ...single("bots", bots && botTest(bots)),
  ];
}

function hostTest(hosts: readonly string[]): ConditionTest {
  const names = new Set(hosts.filter((host) => !host.startsWith("*.")));
  const suffixes = hosts.filter((host) => !names.has(host)).map((host) => host.slice(1));
  return ({ host }) => names.has(host) || suffixes.some((suffix) => host.endsWith(suffix));
}

function methodTest(methods: readonly string[]): ConditionTest {
  return ({ method, sentMethod }) => methods.includes(method) || methods.includes(sentMethod);
}

/** All requests from Workers of other zones have the same address, so it does not identify the client. */
function isInNetworks({ headers }: CanonicalRequest, networks: NetworkSet): boolean | undefined {
  const client = readClient(headers);
  if (client.kind === "unknown") return undefined;
  const contains = networks.contains(client.address);
  return client.kind === "worker" && contains ? undefined : contains;
}

/** Cloudflare's codes for an unknown country, and for Tor, where the user's country is hidden. */
const UNKNOWN_COUNTRY = "XX";
const TOR = "T1";

function countryTest(countries: ReadonlySet<string>): ConditionTest {
  return ({ cf: { country } = {} }) => {
    if (!country || country === UNKNOWN_COUNTRY) return undefined;
    return countries.has(country) || (country === TOR ? undefined : false);
  };
}

function asnTest(asns: ReadonlySet<number>): ConditionTest {
  return ({ cf: { asn } = {} }) => (asn ? asns.has(asn) : undefined);
}

/**
 * Tests the category of a verified bot. Cloudflare reports this category on every plan, with an empty text for any
 * other client. Cloudflare reports `verifiedBot` only with Bot Management.
 */
function botTest(bots: NonNullable<Conditions["bots"]>): ConditionTest {
  return ({ cf: { botManagement, verifiedBotCategory: category } = {} }) => {
    if (category) return bots === "verified" || bots.includes(category);
    const isVerified = (botManagement as { verifiedBot?: boolean } | null | undefined)?.verifiedBot;
    if (isVerified) return bots === "verified" || undefined;
    return isVerified === false || category === "" ? false : undefined;
  };
}

// The routes of all rules.

type Params = Readonly<Record<string, string>>;

/** The path that matched a rule's routes, and the parameters in it. */
export interface PathMatch {
  /**
   * Undefined if several variants match, because a client chooses between them. A variant that an app certainly uses
   * has a separate match.
   */
  readonly path: string | undefined;
  /** The parameters of that path, without the parameters that differ between matching variants. */
  readonly params: Params;
}

/** The rules whose routes match a path, before Weir compares hosts and methods. */
interface RoutedPath {
  /**
   * The index of each selected rule, in ascending order, and the path that selected the rule. A rule occurs several
   * times only if an app routes the request and the rule's key differs between the variants: see
   * {@link CanonicalRequest.routed}.
   */
  readonly selected: readonly (readonly [index: number, match: PathMatch])[];
  /** The indices of the rules whose exceptions match the path. */
  readonly excepted: ReadonlySet<number>;
}

/** The rule to which a route belongs, as one of its paths or of its exceptions. */
interface Target {
  readonly index: number;
  readonly isException: boolean;
}

interface VariantMatch extends PathMatch {
  /** The variant that matched the rule last. */
  readonly variant: string;
}

/** Whether a rule's key reads the path, and the parameters that it reads. */
interface PathReads {
  readonly path: boolean;
  readonly params: readonly string[];
}

const NO_PARAMS = Object.freeze({});

/** With these maximums, the cache of paths takes about 1 MB. */
const CACHED_PATHS = 512;
const MAX_CACHED_LENGTH = 256;
const MAX_CACHED_RULES = 16;

/**
 * The routes of all rules in one trie router, so that the time for a request hardly depends on the number of rules.
 */
class RouteTable {
  readonly #router = new TrieRouter<Target>();
  /** The indices of the rules without paths, which match every path. */
  readonly #pathless: number[] = [];
  readonly #cache = new LruCache<RoutedPath>(CACHED_PATHS);
  /** What the keys read from the path, by the rule's index; undefined if key and tiers read nothing from it. */
  readonly #reads: readonly (PathReads | undefined)[];

  constructor(rules: readonly Rule[], caseSensitivePaths: boolean) {
    this.#reads = rules.map(pathReadsOf);
    for (const [index, { match }] of rules.entries()) {
      const add = (paths: readonly string[] = [], isException: boolean) => {
        for (const path of paths) {
          this.#router.add("ALL", canonicalRoute(path, caseSensitivePaths), { index, isException });
        }
      };
      if (!match.paths) this.#pathless.push(index);
      add(match.paths, false);
      add(match.except?.paths, true);
    }
  }

  /** Caches only unambiguous paths, because such a path has one variant. */
  find(request: CanonicalRequest): RoutedPath {
    const { path, isUnambiguous } = request;
    const cached = isUnambiguous ? this.#cache.get(path) : undefined;
    if (cached) return cached;
    const routed = this.#route(request);
    const isSmall = path.length <= MAX_CACHED_LENGTH && routed.selected.length <= MAX_CACHED_RULES;
    if (isUnambiguous && isSmall) this.#cache.set(path, routed);
    return routed;
  }

  #route({ path, variants, unstrippedVariants, routed = [] }: CanonicalRequest): RoutedPath {
    const { selected, excepted } = this.#select(variants, unstrippedVariants);
    const onlyPath = variants.length === 1 ? path : undefined;
    for (const index of this.#pathless) {
      selected.set(index, { path: onlyPath, params: NO_PARAMS, variant: path });
    }
    const sorted = [...selected].sort(([a], [b]) => a - b);
    const hasReader = routed.length > 0 && sorted.some(([index]) => this.#reads[index]);
    return { selected: hasReader ? this.#addRouted(sorted, variants, routed) : sorted, excepted };
  }

  #select(variants: readonly string[], unstrippedVariants: readonly string[]) {
    const selected = new Map<number, VariantMatch>();
    const excepted = new Set<number>();
    for (const variant of variants) {
      for (const [{ index, isException }, params] of this.#targetsOf(variant)) {
        if (isException) excepted.add(index);
        else select(selected, index, variant, params);
      }
    }
    // Unstripped variants keep `;parameters`, in which clients can write any text. So an unstripped variant selects a
    // rule only if no other variant selects it.
    const alreadySelected = new Set(selected.keys());
    for (const variant of unstrippedVariants) {
      for (const [{ index, isException }, params] of this.#targetsOf(variant)) {
        if (!isException && !alreadySelected.has(index)) select(selected, index, variant, params);
      }
    }
    return { selected, excepted };
  }

  /**
   * Replaces the match of a rule by one match for each value that its key may have. Otherwise a client could reach a
   * handler by a path that counts for another key, or for none.
   */
  #addRouted(
    sorted: readonly (readonly [index: number, match: PathMatch])[],
    variants: readonly string[],
    routed: readonly string[],
  ) {
    const isOther = (variant: string) => !routed.includes(variant);
    const others = variants.filter(isOther);
    const byOthers = this.#select(others, []).selected;
    const byRouted = routed.map((path) => ({ path, selected: this.#select([path], []).selected }));
    return sorted.flatMap(([index, match]): [number, PathMatch][] => {
      const reads = this.#reads[index];
      if (!reads) return [[index, match]];
      const matches: PathMatch[] = [];
      const add = (each: PathMatch | undefined) => {
        if (each && !matches.some((known) => readsSame(reads, known, each))) matches.push(each);
      };
      const isPathless = this.#pathless.includes(index);
      for (const { path, selected } of byRouted) {
        add(isPathless ? { path, params: NO_PARAMS } : selected.get(index));
      }
      const other = isPathless ? others.length > 0 && match : byOthers.get(index);
      // If one of the other variants has another value, the request is also counted as if no app had routed it.
      if (other && !matches.some((known) => readsSame(reads, known, other))) add(match);
      return matches.map((each) => [index, each]);
    });
  }

  #targetsOf(path: string): [Target, Record<string, string>][] {
    const [targets] = this.#router.match("ALL", path) as [[Target, Record<string, string>][]];
    return targets;
  }
}

function select(
  selected: Map<number, VariantMatch>,
  index: number,
  variant: string,
  params: Params,
): void {
  const before = selected.get(index);
  if (!before) selected.set(index, { path: variant, params, variant });
  // If two routes of a rule match the same variant, the first route determines the parameters.
  else if (before.variant !== variant) {
    selected.set(index, { ...intersect(before, variant, params), variant });
  }
}

function pathReadsOf({ key, tiers }: Rule): PathReads | undefined {
  const isOfPath = ({ kind }: KeyPart) => kind === "path" || kind === "param";
  const ofKey = key.flat().filter(isOfPath);
  if (ofKey.length === 0 && !tiers?.by.flat().some(isOfPath)) return undefined;
  return {
    path: ofKey.some(({ kind }) => kind === "path"),
    params: ofKey.flatMap((part) => (part.kind === "param" ? [part.name] : [])),
  };
}

/** Whether a rule's key reads the same values from two matches. */
function readsSame({ path, params }: PathReads, one: PathMatch, other: PathMatch): boolean {
  return (
    (!path || one.path === other.path) &&
    params.every((name) => one.params[name] === other.params[name])
  );
}

function intersect({ path, params }: PathMatch, otherPath: string, otherParams: Params): PathMatch {
  const equal = Object.entries(params).filter(([name, value]) => otherParams[name] === value);
  return { path: path === otherPath ? path : undefined, params: Object.fromEntries(equal) };
}

/** Brings a route into the form of canonical paths. Leaves `*` and the names of parameters unchanged. */
function canonicalRoute(route: string, caseSensitivePaths: boolean): string {
  const segments = splitRoute(route).map((segment) => {
    if (segment === "*") return segment;
    if (!segment.startsWith(":")) return canonicalPath(`/${segment}`, caseSensitivePaths).path;
    // The pattern is put into a group, because Hono would anchor `a|b` as `^a|b$`.
    return segment.replace(/\{(.+)\}/, (_, pattern: string) => {
      return `{(?:${caseSensitivePaths ? pattern : withLowerCase(pattern)})}`;
    });
  });
  return `/${segments
    .map((segment) => segment.replace(/^\//, ""))
    .filter(Boolean)
    .join("/")}`;
}

/** An escape, the start of a named group, a class, or an upper-case letter. */
const PATTERN_PART =
  /\\(?:[cx]..?|u.{4}|k<[^>]*>|p\{[^}]*\}|.)|\(\?<(?![=!])[^>]*>|\[(?:\\.|[^\]\\])*\]|\p{Lu}/gsu;

/** An escape, a range or a character of a class. */
const CLASS_PART = /\\.|([^\\])-([^\\\]])|./gsu;

/**
 * Lets a pattern match paths in lower case: its upper-case letters match lower-case letters. The modifier `(?i:…)`
 * would do the same, but Node has it only since version 23.
 */
export function withLowerCase(pattern: string): string {
  return pattern.replace(PATTERN_PART, (part) => {
    if (part.startsWith("[")) return withLowerCaseClass(part);
    return part.startsWith("\\") || part.startsWith("(") ? part : part.toLowerCase();
  });
}

/** Adds the lower-case forms of the upper-case letters in a class. */
function withLowerCaseClass(text: string): string {
  const added = [...text.slice(1, -1).matchAll(CLASS_PART)].map(([part, first, last]) => {
    if (!first || !last) return /^\p{Lu}$/u.test(part) ? part.toLowerCase() : "";
    const [from, to] = [first < "A" ? "A" : first, last > "Z" ? "Z" : last];
    return from <= to ? `${from}-${to}`.toLowerCase() : "";
  });
  const letters = added.join("");
  if (!letters) return text;
  return text.startsWith("[^") ? `(?:(?![${letters}])${text})` : `(?:[${letters}]|${text})`;
}
