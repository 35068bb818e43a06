import { parseAddress } from "../config/address.ts";
import { isRecord } from "../config/fields.ts";
import {
  type KeyExpression,
  type KeyPart,
  MAX_KEY_LENGTH,
  parseAlternatives,
} from "../config/key.ts";
import { splitRoute } from "../config/match.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { canonicalRequest } from "./canonical-request.ts";
import { clientAddress } from "./headers.ts";
import { hashValues, type IdentifiedClient, keyPartName, type NamedValue } from "./identity.ts";
import { createMatcher, type RuleMatch } from "./matcher.ts";
import { removeTrailing, trimBlanks } from "./text-folding.ts";
import { cookieValue, headerValue, queryValue } from "./values.ts";

// Brings the values of a program's call into the canonical form of the values of requests. With another form, a
// program would use a counter that no request uses.

/** The fields of a configuration that determine the canonical form of values. */
type ValueOptions = Pick<Config, "ipv6Prefix" | "caseSensitivePaths">;

/** The maximum length of a path that Cloudflare accepts, in characters. */
const MAX_PATH = 16 * 1024;
/** The maximum length of a host name (253) with a colon and a port (6), in characters. */
const MAX_HOST = 253 + 6;

/** @returns undefined if no request can contain the value */
function canonicalValue(
  part: KeyPart,
  value: string,
  rule: Rule,
  config: ValueOptions,
): string | undefined {
  // Requests are encoded in UTF-8, which has no lone surrogates.
  if (!value.isWellFormed()) return undefined;
  switch (part.kind) {
    case "ip": {
      const address = parseAddress(value.trim())?.toString();
      return (
        address && clientAddress(new Headers({ "cf-connecting-ip": address }), config.ipv6Prefix)
      );
    }
    case "header":
      return canonicalHeader(part.name, value);
    case "cookie":
      return cookieValue(value);
    case "query":
      return queryValue(value);
    case "path":
      return matchedPath(value, rule, config);
    case "param":
      return matchedParam(part.name, value, rule, config);
    case "host":
      return canonicalHost(value);
    case "method": {
      const method = value.toUpperCase();
      if (!/^[!#$%&'*+.^_`|~0-9A-Z-]+$/.test(method)) return undefined;
      return method === "HEAD" ? "GET" : method;
    }
    case "country":
      return /^[a-z0-9]{2}$/i.test(value) ? value.toUpperCase() : undefined;
    case "asn":
      return /^(?:AS)?0*([1-9]\d{0,9})$/i.exec(value)?.[1];
    case "global":
      return value === "global" ? value : undefined;
    case "ja4":
    case "jwt":
    case "custom":
      return value;
    default:
      return part satisfies never;
  }
}

/** The values that {@link canonicalValue} accepts, for error messages. Every other kind accepts any text. */
const EXPECTED: Partial<Record<KeyPart["kind"], string>> = {
  ip: "an IP address",
  header: 'a text without commas and line breaks, or one credential, such as "Bearer …"',
  cookie: "a text of whole Unicode characters without NULs and backslashes",
  query: "a text of whole Unicode characters without NULs",
  path: 'a path that all origins read in the same way, without host and query, such as "/login"',
  param:
    "a text that the rule's paths allow and all origins read in the same way (no escapes, no / \\ ; ? #)",
  host: 'a host name, such as "api.example.com"',
  method: 'a method, such as "POST"',
  country: 'a code of two letters, such as "DE"',
  asn: 'a number, such as "13335"',
  global: '"global", unless the call has no key',
};

function canonicalHeader(name: string, value: string): string | undefined {
  try {
    const sent = new Headers([[name, value]]).get(name);
    return sent ? headerValue(name, sent) : undefined;
  } catch {
    // A header cannot contain a line break or a NUL.
    return undefined;
  }
}

function canonicalHost(host: string): string | undefined {
  // DNS allows no longer names. Converting a very long name to ASCII takes much time.
  if (host.length > MAX_HOST || !/^[^/?#\\@\s]+$/.test(host)) return undefined;
  return removeTrailing(".", URL.parse(`http://${host}/`)?.hostname ?? "");
}

function matchedPath(path: string, rule: Rule, config: ValueOptions): string | undefined {
  if (!path.startsWith("/") || /[?#]/.test(path)) return undefined;
  const match = matchPath(path, rule.match.paths, rule, config);
  // A path outside the rule's routes is valid too, because an app can name the rule in its middleware for any path.
  return match ? match.path : matchPath(path, undefined, rule, config)?.path;
}

/**
 * Writes a parameter's value into a route of the rule, and `x` into all other segments. Matches this path against the
 * route, and returns the parameter's value.
 */
function matchedParam(
  name: string,
  value: string,
  rule: Rule,
  config: ValueOptions,
): string | undefined {
  const isNamed = (segment: string) => /^:\w+/.exec(segment)?.[0] === `:${name}`;
  for (const route of rule.match.paths ?? []) {
    const segments = splitRoute(route);
    const parameter = segments.find(isNamed);
    if (parameter === undefined) continue;
    // Only a parameter with a pattern can contain slashes.
    const parts = parameter.includes("{") ? value.split("/") : [value];
    const encoded = parts.map(encodeURIComponent).join("/");
    const fillRoute = (text: string) =>
      `/${segments.map((each) => (isNamed(each) ? text : "x")).join("/")}`;
    const params = matchPath(fillRoute(encoded), [fillRoute(parameter)], rule, config)?.params;
    if (params && Object.hasOwn(params, name)) return params[name];
  }
  return undefined;
}

/** Matches a path by the given routes only, without the rule's other conditions. */
function matchPath(
  path: string,
  paths: readonly string[] | undefined,
  rule: Rule,
  { caseSensitivePaths }: ValueOptions,
): RuleMatch | undefined {
  if (path.length > MAX_PATH) return undefined;
  const request = canonicalRequest(new Request(`http://host${path}`), caseSensitivePaths);
  if (!request) return undefined;
  return createMatcher(
    [{ ...rule, match: paths ? { paths: [...paths] } : {} }],
    caseSensitivePaths,
  )(request)[0];
}

/**
 * Identifies the client in a program's call, by the values of the rule's key. A `LimitKey` is one value, or a list
 * with one value for each element of the key. For an element with one alternative, the value is a text, such as
 * `"abc"` for `header:x-api-key`. For an element with several alternatives, the value is an object with the name of
 * one alternative, for example `{ ip: "203.0.113.7" }` or `{ "header:x-api-key": "abc" }` for
 * `header:x-api-key | ip`. Every element accepts `{ ip }`, because Weir uses the client's address if a request has
 * none of the alternatives.
 *
 * @example
 * await env.LIMITS.limit("api", { key: { "header:x-api-key": "abc" } }); // header:x-api-key | ip
 * await env.LIMITS.limit("export", { key: ["acme", "csv"] }); // ["custom:account", "custom:format"]
 */
export type LimitKey = LimitKeyValue | readonly LimitKeyValue[];

/** A text, or an object with the name of one alternative and its value. */
export type LimitKeyValue = string | Readonly<Record<string, string>>;

/** The value for a call without a key. If the rule's key is `global`, the call uses the same counter as requests. */
const GLOBAL: NamedValue = { name: "global", value: "global" };

/**
 * Returns the identity of the client in a program's call. A request with the same values has the same identity in the
 * gateway, so the call and the request use the same counter.
 *
 * @param key undefined for one counter that all calls without a key share
 * @throws {TypeError} if the values do not fit the rule's key. The error's message contains no values
 */
export async function identityOfLimitKey(
  rule: Rule,
  key: LimitKey | undefined,
  config: ValueOptions,
  secret?: string,
): Promise<string> {
  return (await identifyLimitKey(rule, key, config, secret)).identity;
}

/** Like {@link identityOfLimitKey}, but with the values of the key. */
export async function identifyLimitKey(
  rule: Rule,
  key: LimitKey | undefined,
  config: ValueOptions,
  secret?: string,
): Promise<Pick<IdentifiedClient, "identity" | "values">> {
  const values = key === undefined ? [GLOBAL] : valuesOf(rule, key, config);
  return { identity: await hashValues(values, secret), values };
}

function valuesOf(rule: Rule, key: LimitKey, config: ValueOptions): NamedValue[] {
  const given: unknown = Array.isArray(key) ? key : [key];
  // TypeScript does not check calls over a service binding.
  if (!Array.isArray(given) || given.length !== rule.key.length) {
    throw createKeyError(rule, "the key", describeKey(rule.key));
  }
  return rule.key.map((_, index) => namedValue(rule, index, given[index], config));
}

/** @throws {TypeError} if no alternative can have the value, or if no request can contain the value */
function namedValue(rule: Rule, index: number, given: unknown, config: ValueOptions): NamedValue {
  const { part, value } = findAlternative(rule, index, given);
  const name = keyPartName(part);
  if (typeof value !== "string") throw createKeyError(rule, name, "a text");
  const canonical = value.length <= MAX_KEY_LENGTH && canonicalValue(part, value, rule, config);
  if (canonical && canonical.length <= MAX_KEY_LENGTH) return { name, value: canonical };
  throw createKeyError(rule, name, describeExpected(part, value));
}

function describeExpected(part: KeyPart, value: string): string {
  if (value.length > MAX_KEY_LENGTH) return `a text of up to ${MAX_KEY_LENGTH} characters`;
  const isEmpty = trimBlanks(value) === "" && part.kind !== "ip";
  if (isEmpty) return "a text that is not empty";
  return EXPECTED[part.kind] ?? "a text of whole Unicode characters";
}

/** @throws {TypeError} if the element has several alternatives and the value names none of them */
function findAlternative(
  rule: Rule,
  index: number,
  given: unknown,
): { part: KeyPart; value: unknown } {
  const alternatives = rule.key[index] ?? [];
  const [first, ...others] = alternatives;
  if (isRecord(given)) {
    const [[name = "", value] = [], ...more] = Object.entries(given);
    // Programs may use every spelling that a configuration may use.
    const [named] = parseAlternatives(name) ?? [];
    const canonical = named && keyPartName(named);
    const part = [...alternatives, ADDRESS].find((each) => keyPartName(each) === canonical);
    if (part && more.length === 0) return { part, value };
  } else if (first && others.length === 0) {
    return { part: first, value: given };
  }
  const subject = rule.key.length === 1 ? "the key" : `value ${index + 1} of the key`;
  throw createKeyError(rule, subject, describeAlternatives(alternatives));
}

const ADDRESS: KeyPart = { kind: "ip" };

function describeAlternatives(alternatives: readonly KeyPart[]): string {
  const names = new Set([...alternatives, ADDRESS].map(keyPartName));
  const quote = (name: string) => (/^\w+$/.test(name) ? name : JSON.stringify(name));
  return [...names].map((name) => `{ ${quote(name)}: "…" }`).join(" or ");
}

function createKeyError(rule: Rule, subject: string, expected: string): TypeError {
  return new TypeError(`For the rule "${rule.name}", ${subject} must be ${expected}.`);
}

/** Describes the values that a program passes for a key. */
function describeKey(key: KeyExpression): string {
  const values = key.map((alternatives) => {
    const [first, ...others] = alternatives;
    return first && others.length === 0
      ? `a text for ${keyPartName(first)}`
      : describeAlternatives(alternatives);
  });
  return values.length === 1
    ? values.join()
    : `a list of ${values.length} values: ${values.join(", then ")}`;
}
