import { splitRoutingPath } from "hono/utils/url";
import * as v from "valibot";
import { networks } from "./address.ts";
import { faultText } from "./faults.ts";
import {
  differentNames,
  fields,
  integer,
  isRecord,
  type LiteralUnion,
  listOf,
  mapOf,
  parsed,
  parsedText,
} from "./fields.ts";
import { MAX_KEY_LENGTH, parseHeaderName } from "./key.ts";

/** The maximum length of a route, because reading a route takes time in proportion to the square of its length. */
export const MAX_ROUTE = 2048;

/**
 * A segment of a route: empty, `*`, a parameter with or without a pattern, or a literal text. Refuses a parameter
 * with the name `__proto__`, because Hono stores parameters in an object, where this name has another meaning.
 */
const SEGMENT = /^(\*|:(?!__proto__\b)\w+(\{.+\})?\??|(?!\.{1,2}$)[^:*?{}][^*?{}]*)?$/;

/** @returns the route; undefined if it is not in Hono's syntax, or if no path can match it */
export function parseRoute(text: string): string | undefined {
  if (!text.startsWith("/") || text.length > MAX_ROUTE) return undefined;
  if (/[\s#\\]/.test(text.replace(/\{.*\}/g, ""))) return undefined;
  const segments = splitRoute(text);
  // Hono splits at the wrong slash if braces are not closed, or if they contain both braces and slashes.
  if (`/${segments.join("/")}` !== text) return undefined;
  const optional = segments.findIndex((segment) => segment.endsWith("?"));
  if (optional !== -1 && optional !== segments.length - 1) return undefined;
  return segments.every((segment) => SEGMENT.test(segment) && compiles(segment)) ? text : undefined;
}

/** Splits a route into segments as Hono does. Does not split at a slash within a parameter's `{pattern}`. */
export function splitRoute(route: string): string[] {
  return splitRoutingPath(route);
}

/** Whether a parameter's pattern is one regular expression in one pair of braces. */
function compiles(segment: string): boolean {
  const pattern = /\{(.+)\}/.exec(segment)?.[1];
  if (pattern === undefined) return true;
  try {
    new RegExp(pattern);
  } catch {
    return false;
  }
  let depth = 0;
  for (const character of pattern) {
    if (character === "{") depth++;
    if (character === "}" && --depth < 0) return false;
  }
  return depth === 0;
}

/** A value that a header or a query parameter may have: a text, or the start of a text. */
export type ValuePattern = string | { readonly prefix: string };

/**
 * The value that a header or a query parameter must have. `true`: any value. `false`: the header or parameter is
 * absent. A text: this value. `{ prefix }`: a value that begins with this text. A list: one of its elements.
 */
export type ValueInput = boolean | ValuePattern | readonly ValuePattern[];

/** A header or a query parameter, and the value that it must have. */
export interface NamedCondition {
  /** The name of a header is in lower case. */
  readonly name: string;
  readonly expected: boolean | readonly ValuePattern[];
}

const VALUE = faultText(
  'true (present), false (absent), a text without spaces at its ends, { prefix: "…" }, or a list of texts and prefixes',
);
const HEADERS = faultText(
  'an object of header names and values, such as { "x-plan": "free" }, at least one',
);
const QUERY = faultText(
  'an object of parameter names and values, such as { debug: "1" }, at least one',
);

/** The message for two names of a header that differ only in the case of letters. */
export const SAME_HEADER = faultText("is the same header. Remove one of the two");

function parseValue(value: unknown): NamedCondition["expected"] | undefined {
  if (typeof value === "boolean") return value;
  const patterns = [value].flat() as unknown[];
  return patterns.length > 0 && patterns.every(isPattern) ? patterns : undefined;
}

function isPattern(value: unknown): value is ValuePattern {
  if (typeof value === "string") return isValue(value, value.trim());
  if (!isRecord(value) || Object.keys(value).length !== 1) return false;
  return typeof value.prefix === "string" && isValue(value.prefix, value.prefix.trimStart());
}

/** @param trimmed the text without spaces at its ends. No value in a request has such spaces */
function isValue(text: string, trimmed: string): boolean {
  return text !== "" && text === trimmed && text.length <= MAX_KEY_LENGTH;
}

const Value = parsed<ValueInput, NamedCondition["expected"]>(parseValue, VALUE);

/** The schema of the name of a header, in any case. */
export const HeaderName = v.custom<string>(
  (name) => parseHeaderName(String(name)) !== undefined,
  faultText("the name of a header"),
);
const ParameterName = v.custom<string>(Boolean, faultText("the name of a query parameter"));

/** @param parse returns the name in the form in which Weir compares it */
function namedConditions(
  schema: v.GenericSchema<string, string>,
  parse: (name: string) => string | undefined,
  allowed: string,
) {
  return v.pipe(
    mapOf(schema, Value, allowed),
    differentNames(parse, SAME_HEADER),
    v.transform((map) =>
      [...map].map(
        ([name, expected]): NamedCondition => ({
          name: parse(name) as string,
          expected,
        }),
      ),
    ),
  );
}

const HOSTS = faultText('host names without a port, such as "api.example.com" or "*.example.com"');
const METHODS = faultText('HTTP methods, such as "POST"');
const PATHS = faultText(
  'paths in Hono\'s route syntax, such as "/users/:id", "/users/:id{[0-9]+}" or "/v1/*": a leading slash, "*" alone in its segment, "?" only after a last parameter, no query, at most 2048 characters',
);
const COUNTRIES = faultText(
  'countries as ISO 3166-1 codes of two upper-case letters, such as "DE" and "GB", or "T1" for Tor',
);
const ASNS = faultText('numbers of networks, such as 13335 for "AS13335"');
const BOTS = faultText(
  '"verified", or a list of Cloudflare\'s categories, such as ["Search Engine Crawler"]',
);

/** Conditions on a request. A request matches if all given conditions hold. */
export interface ConditionsInput {
  /**
   * Host names without a port. `"*.example.com"` matches every name below `example.com`, but not
   * `example.com` itself.
   *
   * @default every host
   * @example ["api.example.com", "*.example.com"]
   */
  readonly hosts?: readonly string[] | undefined;
  /**
   * HTTP methods. `GET` includes HEAD. A CORS preflight matches only a rule that names `OPTIONS`.
   *
   * @default every method
   * @example ["POST", "PUT"]
   */
  readonly methods?: readonly string[] | undefined;
  /**
   * Paths in Hono's route syntax, each with a leading slash. `:id` is a parameter, `:id{[0-9]+}` is
   * a parameter with a pattern, and `:id?` is an optional parameter at the end. `"/v1/*"` includes
   * `/v1`. A path with a query is refused.
   *
   * @default every path
   * @example ["/login", "/users/:id", "/v1/*"]
   */
  readonly paths?: readonly string[] | undefined;
  /**
   * Headers, each with the value that it must have: `true` (present), `false` (absent), a text, `{ prefix: "…" }`, or
   * a list of texts and prefixes, one of which must match. Clients choose these values. To except requests with a
   * secret, use `exempt.headers` instead.
   *
   * @default every request
   * @example { authorization: { prefix: "Bearer sk-" }, "x-plan": ["free", "trial"] }
   */
  readonly headers?: Readonly<Record<string, ValueInput>> | undefined;
  /**
   * Query parameters, with the same values as `headers`. Clients choose these values.
   *
   * @default every request
   * @example { export: true, format: ["csv", "xlsx"] }
   */
  readonly query?: Readonly<Record<string, ValueInput>> | undefined;
  /**
   * Addresses and networks of clients, at most 50,000. Write IPv4 addresses in IPv4 notation.
   *
   * @default every address
   * @example ["198.51.100.0/24", "2001:db8::/32"]
   */
  readonly ips?: readonly string[] | undefined;
  /**
   * Countries of clients, as Cloudflare reports them: ISO 3166-1 codes in upper case, or `"T1"` for
   * Tor. If the country is unknown, `match` holds, and `except` does not.
   *
   * @default every country
   * @example ["DE", "AT", "CH"]
   */
  readonly countries?: readonly string[] | undefined;
  /**
   * Numbers of the autonomous systems (networks of operators) of clients, as Cloudflare reports them. If the number
   * is unknown, `match` holds, and `except` does not.
   *
   * @default every network
   * @example [13335]
   */
  readonly asns?: readonly number[] | undefined;
  /**
   * Bots that Cloudflare has verified: `"verified"` for all verified bots, or a list of categories. If Cloudflare
   * reports nothing about bots, `match` holds, and `except` does not.
   *
   * @default every client
   * @example ["Search Engine Crawler", "Page Preview"]
   */
  readonly bots?: "verified" | readonly BotCategory[] | undefined;
}

/** A category of verified bots. Cloudflare may add more. */
export type BotCategory = LiteralUnion<
  | "Academic Research"
  | "Accessibility"
  | "Advertising & Marketing"
  | "Aggregator"
  | "AI Assistant"
  | "AI Crawler"
  | "AI Search"
  | "Archiver"
  | "Feed Fetcher"
  | "Monitoring & Analytics"
  | "Page Preview"
  | "Search Engine Crawler"
  | "Search Engine Optimization"
  | "Security"
  | "Social Media Marketing"
  | "Webhooks"
  | "Other"
>;

/** The schemas of all conditions. */
const conditions = {
  hosts: optionalList(parsedText(parseHost, HOSTS), HOSTS),
  methods: optionalList(parsedText(parseMethod, METHODS), METHODS),
  paths: optionalList(parsedText(parseRoute, PATHS), PATHS),
  headers: v.optional(namedConditions(HeaderName, parseHeaderName, HEADERS)),
  query: v.optional(namedConditions(ParameterName, (name) => name, QUERY)),
  ips: v.optional(networks()),
  countries: optionalList(parsedText(parseCountry, COUNTRIES), COUNTRIES),
  asns: optionalList(integer(1, 4_294_967_295, ASNS), ASNS),
  bots: v.optional(parsed<"verified" | readonly string[], Bots>(parseBots, BOTS)),
};

/** @param items the allowed items, for messages */
function optionalList<const Item extends v.GenericSchema>(item: Item, items: string) {
  return v.optional(
    listOf(
      item,
      faultText(() => `a list of ${items}`),
    ),
  );
}

/**
 * {@link ConditionsInput}, parsed: hosts in lower case and ASCII, methods in upper case, names of headers in lower
 * case.
 */
export type Conditions = Readonly<v.InferOutput<v.ObjectSchema<typeof conditions, undefined>>>;

/** All verified bots, or the verified bots of some categories. */
type Bots = "verified" | readonly string[];

/** @returns the host name as a URL parser writes it: in lower case and in ASCII */
export function parseHost(text: string): string | undefined {
  const [, wildcard = "", name = ""] = /^(\*\.)?([^*\s/:?#@\\]+)$/.exec(text) ?? [];
  const host = URL.parse(`http://${name}`)?.hostname.replace(/\.$/, "");
  // No request has a host with an empty label, such as `.example.com`.
  return host && !/^\.|\.\./.test(host) ? wildcard + host : undefined;
}

/** @returns the method in upper case, as the matcher needs it */
export function parseMethod(text: string): string | undefined {
  return /^[A-Za-z][A-Za-z0-9-]*$/.test(text) ? text.toUpperCase() : undefined;
}

/**
 * Refuses codes that Cloudflare does not use, and its code `XX` for an unknown country, because a condition cannot
 * select clients with an unknown country.
 */
function parseCountry(text: string): string | undefined {
  return /^(?!UK|EU|XX)[A-Z]{2}$|^T1$/.test(text) ? text : undefined;
}

function parseBots(value: unknown): Bots | undefined {
  if (value === "verified") return value;
  return Array.isArray(value) && value.length > 0 && value.every(isCategory) ? value : undefined;
}

function isCategory(value: unknown): boolean {
  return typeof value === "string" && /^[A-Z][A-Za-z& -]{1,63}$/.test(value);
}

/** The requests that a rule counts. All conditions must hold for a request, and `except` must not. */
export interface MatchInput extends ConditionsInput {
  /**
   * The rule does not count requests for which all of these conditions hold. At least one condition
   * is required.
   *
   * @default none
   * @example { paths: ["/v1/health"] }
   */
  readonly except?: ConditionsInput | undefined;
}

const AT_LEAST_ONE = faultText(() => `at least one of ${Object.keys(conditions).join(", ")}`);

export const MatchSchema = fields({
  ...conditions,
  except: v.optional(
    v.pipe(
      fields(conditions),
      // Without a condition, `except` would hold for every request, and the rule would count none.
      v.check((except) => Object.values(except).some((list) => list !== undefined), AT_LEAST_ONE),
    ),
  ),
});

/** {@link MatchInput}, parsed. */
export type Match = Readonly<v.InferOutput<typeof MatchSchema>>;
