import type { KeyPart } from "../config/key-expression.ts";
import { splitRoute } from "../config/match.ts";
import { parseAddress } from "../config/network.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { canonicalRequest } from "./canonical-request.ts";
import { clientAddress } from "./client-address.ts";
import { createMatcher, type RuleMatch } from "./matcher.ts";
import { cookieValue, headerNamed, queryValue } from "./request-values.ts";
import { withoutFinal } from "./text-folding.ts";

// A program's values go the way of a request's where that can be: a value that the gateway never
// counts by would be a counter that only programs see.

type Canonical = Pick<Config, "ipv6Prefix" | "caseSensitivePaths">;

/** Characters of a path that Cloudflare lets through. */
const MAX_PATH = 16 * 1024;
/** Characters of a host name, and of a port behind it. */
const MAX_HOST = 253 + 6;

/** @returns the value in the form in which the gateway counts it; undefined when no request has it */
export function countedValue(
  part: KeyPart,
  value: string,
  rule: Rule,
  config: Canonical,
): string | undefined {
  // Requests are UTF-8, which has no halves of characters.
  if (!value.isWellFormed()) return undefined;
  switch (part.kind) {
    case "ip": {
      const address = parseAddress(value.trim())?.toString();
      return (
        address && clientAddress(new Headers({ "cf-connecting-ip": address }), config.ipv6Prefix)
      );
    }
    case "header":
      return inHeader(part.name, value);
    case "cookie":
      return cookieValue(value);
    case "query":
      return queryValue(value);
    case "path":
      return inPath(value, rule, config);
    case "param":
      return inRoute(part.name, value, rule, config);
    case "host":
      return inUrl(value);
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

/** What {@link countedValue} takes, for an error. */
export function wantedValue(part: KeyPart): string {
  switch (part.kind) {
    case "ip":
      return "an IP address";
    case "header":
      return /authorization$/.test(part.name)
        ? 'one credential without commas, such as "Bearer …"'
        : "a text without commas and line breaks";
    case "path":
      return 'a path that origins read in one way, without host and query, such as "/login"';
    case "param":
      return "a text that the rule's paths allow and origins read in one way: without / \\ ; ? # and escapes";
    case "host":
      return 'a host name, such as "api.example.com"';
    case "method":
      return 'a method, such as "POST"';
    case "country":
      return 'a code of two letters, such as "DE"';
    case "asn":
      return 'a number, such as "13335"';
    case "global":
      return 'no value, or "global"';
    default:
      return "a text of whole Unicode characters that is not empty";
  }
}

function inHeader(name: string, value: string): string | undefined {
  try {
    return headerNamed(new Headers([[name, value]]), name);
  } catch {
    // A line break or a NUL.
    return undefined;
  }
}

function inUrl(host: string): string | undefined {
  // DNS has no longer names, and bringing one into ASCII takes long.
  if (host.length > MAX_HOST || !/^[^/?#\\@\s]+$/.test(host)) return undefined;
  return withoutFinal(".", URL.parse(`http://${host}/`)?.hostname ?? "");
}

function inPath(path: string, rule: Rule, config: Canonical): string | undefined {
  if (!path.startsWith("/") || /[?#]/.test(path)) return undefined;
  const found = matchOf(path, rule.match.paths, rule, config);
  // `rateLimit` applies a rule that it is given to all paths.
  return found ? found.path : matchOf(path, undefined, rule, config)?.path;
}

/** The parameter as one of the rule's routes takes it from a path, in which all other segments are `x`. */
function inRoute(name: string, value: string, rule: Rule, config: Canonical): string | undefined {
  const isNamed = (segment: string) => /^:\w+/.exec(segment)?.[0] === `:${name}`;
  for (const route of rule.match.paths ?? []) {
    const segments = splitRoute(route);
    const named = segments.find(isNamed);
    if (named === undefined) continue;
    // Only a pattern spans segments.
    const parts = named.includes("{") ? value.split("/") : [value];
    const written = parts.map(encodeURIComponent).join("/");
    const pathTo = (text: string) =>
      `/${segments.map((each) => (isNamed(each) ? text : "x")).join("/")}`;
    const found = matchOf(pathTo(written), [pathTo(named)], rule, config)?.params;
    if (found && Object.hasOwn(found, name)) return found[name];
  }
  return undefined;
}

/** How a request with that path falls under a rule with those routes, and no other conditions. */
function matchOf(
  path: string,
  paths: readonly string[] | undefined,
  rule: Rule,
  { caseSensitivePaths }: Canonical,
): RuleMatch | undefined {
  if (path.length > MAX_PATH) return undefined;
  const request = canonicalRequest(new Request(`http://host${path}`), caseSensitivePaths);
  if (!request) return undefined;
  return createMatcher(
    [{ ...rule, match: paths ? { paths } : {} }],
    caseSensitivePaths,
  )(request)[0];
}
