import { splitRoutingPath } from "hono/utils/url";
import * as v from "valibot";
import { fields, listOf, parsedText } from "./fields.ts";

const HOSTS = 'host names without a port, such as "api.example.com" or "*.example.com"';
const METHODS = 'HTTP methods, such as "POST"';
const PATHS =
  'paths in Hono\'s route syntax, such as "/users/:id", "/users/:id{[0-9]+}" or "/v1/*": a leading slash, "*" alone in its segment, "?" only after a last parameter, no query, at most 2048 characters';
/** Reading a route takes time that grows with the square of its length. */
export const MAX_ROUTE = 2048;

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
}

/** The requests that a rule counts. All given conditions hold for them, and `except` does not. */
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

const conditions = {
  hosts: v.optional(listOf(parsedText(parseHost, HOSTS), `a list of ${HOSTS}`)),
  methods: v.optional(listOf(parsedText(parseMethod, METHODS), `a list of ${METHODS}`)),
  paths: v.optional(listOf(parsedText(parseRoute, PATHS), `a list of ${PATHS}`)),
};

const AT_LEAST_ONE = `at least one of ${Object.keys(conditions).join(", ")}`;

export const MatchSchema = fields({
  ...conditions,
  except: v.optional(
    v.pipe(
      fields(conditions),
      // Without a condition, `except` would hold for every request, and the rule would count no
      // request.
      v.check((except) => Object.values(except).some((list) => list !== undefined), AT_LEAST_ONE),
    ),
  ),
});

/** {@link ConditionsInput}, parsed: hosts in lower case and ASCII, methods in upper case. */
export interface Conditions {
  readonly hosts?: readonly string[] | undefined;
  readonly methods?: readonly string[] | undefined;
  readonly paths?: readonly string[] | undefined;
}

/** {@link MatchInput}, parsed. */
export interface Match extends Conditions {
  readonly except?: Conditions | undefined;
}

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
 * A segment of a route: empty, `*`, a parameter with or without a pattern, or a literal text. A
 * parameter with the name `__proto__` does not match, because Hono's objects cannot hold it.
 */
const SEGMENT = /^(\*|:(?!__proto__\b)\w+(\{.+\})?\??|(?!\.{1,2}$)[^:*?{}][^*?{}]*)?$/;

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

/** Splits a route into segments as Hono does. A slash within a parameter's `{pattern}` is kept. */
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
