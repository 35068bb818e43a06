import * as v from "valibot";
import { faultText } from "./fault-text.ts";
import { integer, listOf, parsed, parsedText } from "./fields.ts";
import { type NetworkSet, networks } from "./network-set.ts";
import { parseRoute } from "./route.ts";
import type { TextLike } from "./text-like.ts";
import { type NamedCondition, type ValueInput, valueConditions } from "./value-condition.ts";

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
   * Header fields, each with the value that it must have: `true` (present), `false` (absent), a
   * text, `{ prefix: "…" }`, or a list of texts and prefixes, one of which must match. Clients
   * choose these values. To except requests that have a secret, use `exempt.headers` instead.
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
   * Numbers of the autonomous systems (networks of operators) of clients, as Cloudflare reports
   * them. If the number is unknown, `match` holds, and `except` does not.
   *
   * @default every network
   * @example [13335]
   */
  readonly asns?: readonly number[] | undefined;
  /**
   * Bots that Cloudflare has verified: `"verified"` for all of them, or a list of categories. If
   * Cloudflare reports nothing about bots, `match` holds, and `except` does not.
   *
   * @default every client
   * @example ["Search Engine Crawler", "Page Preview"]
   */
  readonly bots?: "verified" | readonly BotCategory[] | undefined;
}

/** A category of verified bots. Cloudflare may add more. */
export type BotCategory = TextLike<
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
export const conditions = {
  hosts: optionalList(parsedText(parseHost, HOSTS), HOSTS),
  methods: optionalList(parsedText(parseMethod, METHODS), METHODS),
  paths: optionalList(parsedText(parseRoute, PATHS), PATHS),
  ...valueConditions,
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
 * {@link ConditionsInput}, parsed: hosts in lower case and ASCII, methods in upper case, names of
 * header fields in lower case.
 */
export interface Conditions {
  readonly hosts?: readonly string[] | undefined;
  readonly methods?: readonly string[] | undefined;
  readonly paths?: readonly string[] | undefined;
  readonly headers?: readonly NamedCondition[] | undefined;
  readonly query?: readonly NamedCondition[] | undefined;
  readonly ips?: NetworkSet | undefined;
  readonly countries?: readonly string[] | undefined;
  readonly asns?: readonly number[] | undefined;
  readonly bots?: Bots | undefined;
}

/** All verified bots, or those of some categories. */
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
 * Refuses codes that Cloudflare does not use, and `XX`, Cloudflare's code for an unknown country. A
 * condition cannot select clients whose country is unknown.
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
