import type { Conditions } from "../config/conditions.ts";
import type { NetworkSet } from "../config/network-set.ts";
import type { NamedCondition } from "../config/value-condition.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { readClient } from "../request/client-address.ts";
import type { HeaderFields } from "../request/header-fields.ts";
import { MAX_VALUES, sentParameters } from "./sent-parameters.ts";
import { namesCredential, quoted, shownCredential, shownList, shownText } from "./shown-value.ts";

/** What a request has and what a condition demands. */
export interface ConditionTexts {
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
export function shownAddress(headers: HeaderFields): string {
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
