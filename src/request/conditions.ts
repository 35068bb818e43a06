import type { NetworkSet } from "../config/address.ts";
import type { Conditions, NamedCondition, ValuePattern } from "../config/match.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { readClient } from "./headers.ts";
import { foldValue, type SentText, type SentValue } from "./sent-values.ts";
import { isAscii } from "./text-folding.ts";
import { hasCredential } from "./values.ts";

/**
 * Whether a condition holds for a request; undefined if this is unknown, because the request lacks
 * a value, or because origins may read different values. A client must not be able to avoid a rule
 * by an unknown result. So if the result is unknown, `match` counts the request, and `except` does
 * not except it.
 */
export type ConditionTest = (request: CanonicalRequest) => boolean | undefined;

/** Creates the test for one header. */
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

/** Creates the test for one query parameter. */
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
 * Creates the test for a text. The condition holds only if every origin reads exactly the expected
 * text. If some origins may read the expected text and others may not, the result is unknown.
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
 * Returns the part of an expected value after the scheme. For a prefix that is only a scheme, such
 * as `Bearer`, the result matches every credential, because many origins ignore the scheme.
 */
function credentialPattern(pattern: ValuePattern): ValuePattern {
  const text = patternText(pattern);
  if (typeof pattern !== "string" && /^[a-z]+:?\s*$/i.test(text)) return { prefix: "" };
  return mapPattern(pattern, () => foldValue(text.slice(text.lastIndexOf(" ") + 1) || text));
}

/** One condition of a rule. */
export interface Condition {
  /** The field that demands it: `hosts`, or with the name of a header or a parameter, such as `query.export`. */
  readonly field: string;
  /** The header or the query parameter. */
  readonly named?: NamedCondition;
  readonly test: ConditionTest;
}

/** Returns all conditions except those on paths, in the order in which the matcher tests them. */
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

/**
 * Whether the client's address is in a list of networks; undefined if this is unknown. Requests
 * from Workers of other zones all have one address, so such an address does not identify the
 * client.
 */
function isInNetworks({ headers }: CanonicalRequest, networks: NetworkSet): boolean | undefined {
  const client = readClient(headers);
  if (client.kind === "unknown") return undefined;
  const contains = networks.contains(client.address);
  return client.kind === "worker" && contains ? undefined : contains;
}

/** Cloudflare's code for a client whose country it does not know. */
const UNKNOWN_COUNTRY = "XX";
/** Cloudflare's code for Tor, which hides the country of its users. */
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
 * Creates the test for bots. On every plan, Cloudflare reports the category of a verified bot, and
 * an empty text for any other client. Only with Bot Management does Cloudflare report
 * `verifiedBot`.
 */
function botTest(bots: NonNullable<Conditions["bots"]>): ConditionTest {
  return ({ cf: { botManagement, verifiedBotCategory: category } = {} }) => {
    if (category) return bots === "verified" || bots.includes(category);
    const isVerified = (botManagement as { verifiedBot?: boolean } | null | undefined)?.verifiedBot;
    if (isVerified) return bots === "verified" || undefined;
    return isVerified === false || category === "" ? false : undefined;
  };
}
