import type { NetworkSet } from "../config/address.ts";
import type { Conditions, NamedCondition } from "../config/match.ts";
import type { Rule } from "../config/rule.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import type { ReadonlyHeaders } from "../request/headers.ts";
import { readClient } from "../request/headers.ts";
import { createMatcher } from "../request/matcher.ts";
import {
  type ExplainedCondition,
  namesCredential,
  quoted,
  shownCredential,
  shownList,
  shownText,
} from "./explanation.ts";
import { MAX_VALUES, sentParameters } from "./sent-parameters.ts";

/** A condition of a rule on its own, and its result for a request. */
export interface TestedCondition {
  /** The path of the field, such as `match.methods` or `match.except.query.export`. */
  readonly field: string;
  readonly condition: Conditions;
  readonly isException: boolean;
  readonly result: ExplainedCondition["result"];
}

type Condition = Omit<TestedCondition, "result">;

/** A condition of a rule, and the rules with which the matcher tests it. */
interface Probe {
  readonly rule: Rule;
  readonly condition: Condition;
  /** Matches if the condition holds or is unknown. */
  readonly selecting: Rule;
  /** Matches if the condition does not hold or is unknown. Undefined for paths, and if it is never unknown. */
  readonly excepting?: Rule;
}

/**
 * Tests each condition of each rule on its own.
 *
 * The matcher itself tests them: each condition becomes the only one of a rule, once in `match` and once in
 * `except`. A condition whose result is unknown fulfils `match`, but not `except`. One matcher tests all
 * conditions, so that the path and the query are read once.
 *
 * @param near the rules with a route that may match the path. Of the other rules, only the paths are tested
 * @returns the conditions of each rule in the order in which the matcher tests them
 */
export function testConditions(
  rules: readonly Rule[],
  request: CanonicalRequest,
  caseSensitivePaths: boolean,
  near: ReadonlySet<Rule>,
): Map<Rule, TestedCondition[]> {
  const probes = [...near].flatMap((rule) => probesOf(rule, request));
  const candidates = probes.flatMap(({ selecting, excepting }) =>
    excepting ? [selecting, excepting] : [selecting],
  );
  const matches = createMatcher(candidates, caseSensitivePaths)(request);
  const matching = new Set(matches.map(({ rule }) => rule));
  const ambiguous = probes.flatMap(({ condition: { field }, selecting }) =>
    field === "match.paths" && !request.isUnambiguous && matching.has(selecting) ? selecting : [],
  );
  const clear = matchingEveryReading(ambiguous, request, caseSensitivePaths);
  const tested = new Map(rules.map((rule) => [rule, [] as TestedCondition[]]));
  for (const rule of rules) {
    if (near.has(rule)) continue;
    const { paths } = rule.match;
    const fields = { field: "match.paths", condition: { paths }, isException: false } as const;
    tested.get(rule)?.push({ ...fields, result: "fails" });
  }
  for (const { rule, condition, selecting, excepting } of probes) {
    const { paths } = condition.condition;
    const isUnclear = paths ? !request.isUnambiguous : excepting && matching.has(excepting);
    const isUnknown = isUnclear && !clear.has(selecting);
    const result = !matching.has(selecting) ? "fails" : isUnknown ? "unknown" : "holds";
    tested.get(rule)?.push({ ...condition, result });
  }
  return tested;
}

function probesOf(rule: Rule, { isPreflight }: CanonicalRequest): Probe[] {
  // A preflight matches only rules that name OPTIONS.
  const methods = isPreflight ? ["OPTIONS"] : undefined;
  return conditionsOf(rule).map((condition): Probe => {
    const { condition: single } = condition;
    const selecting = { ...rule, match: { methods, ...single } };
    // Every request has a host and a method, and the request itself shows whether its path is unclear.
    const isCertain = single.hosts ?? single.methods ?? single.paths;
    return isCertain
      ? { rule, condition, selecting }
      : { rule, condition, selecting, excepting: { ...rule, match: { methods, except: single } } };
  });
}

/**
 * Returns the header fields and query parameters, such as `headers.x-plan`, whose values in the request are, or
 * may be, texts of the configuration, which may be secrets.
 */
export function fieldsWithSecrets(tested: Iterable<readonly TestedCondition[]>): Set<string> {
  const fields = new Set<string>();
  for (const conditions of tested) {
    for (const { field, condition, result } of conditions) {
      const { expected = true } = condition.headers?.[0] ?? condition.query?.[0] ?? {};
      if (result !== "fails" && typeof expected !== "boolean") fields.add(valueField(field));
    }
  }
  return fields;
}

/** Returns the field of a condition without `match` and `except`. */
export function valueField(field: string): string {
  return field.replace(/^match\.(?:except\.)?/, "");
}

/** Returns the rules whose paths match the request however an origin reads its path. */
function matchingEveryReading(
  rules: readonly Rule[],
  request: CanonicalRequest,
  caseSensitivePaths: boolean,
): Set<Rule> {
  if (rules.length === 0) return new Set();
  const matchRules = createMatcher(rules, caseSensitivePaths);
  const { method, sentMethod, isPreflight, host, headers, sent } = request;
  const others = { search: "", hasHiddenQuery: false, hasBody: false, cf: undefined };
  const found = [...request.variants, ...request.unstrippedVariants].map((path) => {
    const reading = { path, variants: [path], unstrippedVariants: [], isUnambiguous: true };
    const base = { method, sentMethod, isPreflight, host, headers, sent };
    return new Set(matchRules({ ...base, ...others, ...reading }).map(({ rule }) => rule));
  });
  return new Set(rules.filter((rule) => found.every((matching) => matching.has(rule))));
}

function conditionsOf({ match: { except, ...match } }: Rule): Condition[] {
  const { paths, hosts, methods, ...others } = match;
  return [
    ...singleConditions({ paths, hosts, methods }, "match", false),
    ...singleConditions(except ?? {}, "match.except", true),
    ...singleConditions(others, "match", false),
  ];
}

function singleConditions(all: Conditions, path: string, isException: boolean): Condition[] {
  const { paths, hosts, methods, headers = [], query = [], ips, countries, asns, bots } = all;
  const single = (name: string, condition: Conditions): Condition[] =>
    Object.values(condition).every((value) => value === undefined)
      ? []
      : [{ field: `${path}.${name}`, condition, isException }];
  return [
    ...single("paths", { paths }),
    ...single("hosts", { hosts }),
    ...single("methods", { methods }),
    ...headers.flatMap((each) => single(`headers.${each.name}`, { headers: [each] })),
    ...query.flatMap((each) => single(`query.${each.name}`, { query: [each] })),
    ...single("ips", { ips }),
    ...single("countries", { countries }),
    ...single("asns", { asns }),
    ...single("bots", { bots }),
  ];
}

/** What a request has and what a condition demands. */
interface ConditionTexts {
  readonly actual: string;
  readonly expected: string;
}

/**
 * Returns the texts for a single condition. They contain no text of the configuration that may be a secret, and
 * no whole value of the request that may be a credential.
 *
 * @param isSecret whether the value of the header field or the query parameter may be a text of the configuration
 */
export function textsOf(
  condition: Conditions,
  request: CanonicalRequest,
  isSecret: boolean,
): ConditionTexts {
  const { paths, hosts, methods, headers, query, ips, countries, asns, bots } = condition;
  const { cf } = request;
  if (paths) return { actual: actualPath(request), expected: listOf(paths) };
  if (hosts) return { actual: request.host, expected: listOf(hosts) };
  if (methods) return { actual: actualMethod(request), expected: listOf(methods) };
  if (headers?.[0])
    return { actual: actualHeader(headers[0], request, isSecret), expected: demandOf(headers[0]) };
  if (query?.[0])
    return { actual: actualParameter(query[0], request, isSecret), expected: demandOf(query[0]) };
  if (ips) return { actual: shownAddress(request.headers), expected: shownNetworks(ips) };
  if (countries) return { actual: cf?.country || "no country", expected: listOf(countries) };
  if (asns) return { actual: cf?.asn ? `AS${cf.asn}` : "no number", expected: asnsOf(asns) };
  return { actual: actualBot(request), expected: bots === "verified" ? bots : listOf(bots ?? []) };
}

function listOf(items: readonly (string | number)[]): string {
  return shownList(items, items.length);
}

function asnsOf(asns: readonly number[]): string {
  return shownList(
    asns.map((asn) => `AS${asn}`),
    asns.length,
  );
}

export function shownNetworks(networks: NetworkSet): string {
  const texts = function* () {
    for (const [address, bits] of networks) yield `${address}/${bits}`;
  };
  return shownList(texts(), networks.size);
}

/** Returns the client's full address, which conditions use. */
export function shownAddress(headers: ReadonlyHeaders): string {
  const client = readClient(headers);
  if (client.kind === "unknown") return "no address";
  const address = client.address.toString();
  return client.kind === "worker" ? `${address}, which all Workers of other zones share` : address;
}

function actualPath({ path, variants, isUnambiguous }: CanonicalRequest): string {
  const shown = shownText(path);
  if (isUnambiguous) return shown;
  return variants.length > 1
    ? `${shown}, which origins may read in ${variants.length} ways`
    : `${shown}, which origins may read in different ways`;
}

function actualMethod({ sentMethod, isPreflight }: CanonicalRequest): string {
  return isPreflight ? "OPTIONS of a CORS preflight" : sentMethod;
}

function actualHeader(
  { name }: NamedCondition,
  { headers }: CanonicalRequest,
  isSecret: boolean,
): string {
  const value = headers.get(name);
  if (value === null) return "absent";
  return isSecret || namesCredential(name) ? shownCredential(value) : quoted(value);
}

function actualParameter(
  { name }: NamedCondition,
  request: CanonicalRequest,
  isSecret: boolean,
): string {
  const { values, count } = sentParameters(request).get(name) ?? { values: [], count: 0 };
  if (count === 0) return "absent";
  const shown = isSecret || namesCredential(name) ? shownCredential : quoted;
  const list = shownList(values.map(shown), count, MAX_VALUES);
  return count === 1 ? list : `${count} values: ${list}`;
}

function actualBot({ cf }: CanonicalRequest): string {
  const { verifiedBotCategory, botManagement } = cf ?? {};
  if (verifiedBotCategory) return verifiedBotCategory;
  const { verifiedBot } = (botManagement ?? {}) as { verifiedBot?: boolean };
  if (verifiedBot) return "a verified bot without a category";
  return verifiedBot === false || verifiedBotCategory === ""
    ? "no verified bot"
    : "no data about bots";
}

/** Returns what a condition demands, without its texts, which may be secrets. */
function demandOf({ expected }: NamedCondition): string {
  if (expected === true) return "present";
  if (expected === false) return "absent";
  const texts = expected.filter((pattern) => typeof pattern === "string").length;
  const prefixes = expected.length - texts;
  const parts = [
    texts > 0 && (texts === 1 ? "a text" : `one of ${texts} texts`),
    prefixes > 0 && (prefixes === 1 ? "a prefix" : `one of ${prefixes} prefixes`),
  ].filter(Boolean);
  return `${parts.join(" or ")} (not shown)`;
}
