import { parseAddress } from "../config/address.ts";
import type { KeyPart } from "../config/key-expression.ts";
import { splitRoute } from "../config/route.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { canonicalRequest } from "./canonical-request.ts";
import { clientAddress } from "./client-address.ts";
import { createMatcher, type RuleMatch } from "./matcher.ts";
import { cookieValue, headerValue, queryValue } from "./request-values.ts";
import { removeTrailing } from "./text-folding.ts";

// This module brings the values of a program's call into the canonical form that the gateway uses
// for the values of requests. It uses the gateway's functions if possible. If the forms differed, a
// program would use a counter that no request uses.

/** The fields of a configuration that affect the canonical form of values. */
export type ValueOptions = Pick<Config, "ipv6Prefix" | "caseSensitivePaths">;

/** The maximum length of a path that Cloudflare accepts, in characters. */
const MAX_PATH = 16 * 1024;
/** The maximum length of a host name (253) with a colon and a port (6), in characters. */
const MAX_HOST = 253 + 6;

/**
 * @returns the value in the gateway's canonical form; undefined if no request can contain the value
 */
export function canonicalValue(
  part: KeyPart,
  value: string,
  rule: Rule,
  config: ValueOptions,
): string | undefined {
  // Requests are encoded in UTF-8, which cannot encode lone surrogates.
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

/** Describes the values that {@link canonicalValue} accepts, for error messages. */
export function expectedValue(part: KeyPart): string {
  switch (part.kind) {
    case "ip":
      return "an IP address";
    case "header":
      return /authorization$/.test(part.name)
        ? 'one credential without commas, such as "Bearer …"'
        : "a text without commas and line breaks";
    case "cookie":
    case "query":
      return "a text of whole Unicode characters that is not empty, without NULs, and without backslashes in cookies";
    case "path":
      return 'a path that all origins read in the same way, without host and query, such as "/login"';
    case "param":
      return "a text that the rule's paths allow and all origins read in the same way (no escapes, no / \\ ; ? #)";
    case "host":
      return 'a host name, such as "api.example.com"';
    case "method":
      return 'a method, such as "POST"';
    case "country":
      return 'a code of two letters, such as "DE"';
    case "asn":
      return 'a number, such as "13335"';
    case "global":
      return '"global", unless the call has no key';
    default:
      return "a text of whole Unicode characters that is not empty";
  }
}

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
  // DNS does not allow longer names, and converting a very long name to ASCII takes much time.
  if (host.length > MAX_HOST || !/^[^/?#\\@\s]+$/.test(host)) return undefined;
  return removeTrailing(".", URL.parse(`http://${host}/`)?.hostname ?? "");
}

function matchedPath(path: string, rule: Rule, config: ValueOptions): string | undefined {
  if (!path.startsWith("/") || /[?#]/.test(path)) return undefined;
  const match = matchPath(path, rule.match.paths, rule, config);
  // Paths outside the rule's routes are valid too, because an app can apply a rule to any path by
  // naming the rule in the middleware.
  return match ? match.path : matchPath(path, undefined, rule, config)?.path;
}

/**
 * Returns the canonical form of a parameter's value. It writes the value into a route of the rule,
 * and `x` into all other segments. Then it matches this path against the route, and returns the
 * parameter that the route has read.
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

/** Matches a path against the given routes. It ignores all other conditions of the rule. */
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
    [{ ...rule, match: paths ? { paths } : {} }],
    caseSensitivePaths,
  )(request)[0];
}
