import { splitRoutingPath } from "hono/utils/url";
import * as v from "valibot";
import { fields, listOf, parsed } from "./fields.ts";

const HOSTS = 'host names without a port, such as "api.example.com" or "*.example.com"';
const METHODS = 'HTTP methods, such as "POST"';
const PATHS =
  'paths in Hono\'s route syntax, such as "/users/:id", "/users/:id{[0-9]+}" or "/v1/*": a leading slash, "*" alone in its segment, "?" only behind a last parameter, no query';

const conditions = {
  hosts: v.optional(listOf(parsed(parseHost, HOSTS), `a list of ${HOSTS}`)),
  methods: v.optional(listOf(parsed(parseMethod, METHODS), `a list of ${METHODS}`)),
  paths: v.optional(listOf(parsed(parseRoute, PATHS), `a list of ${PATHS}`)),
};

const AT_LEAST_ONE = `at least one of ${Object.keys(conditions).join(", ")}`;

/** Which requests a rule is about: every condition that is given must hold, and `except` must not. */
export const MatchSchema = fields({
  ...conditions,
  except: v.optional(
    v.pipe(
      fields(conditions),
      // Without a condition it would hold for every request and switch its rule off.
      v.check((except) => Object.values(except).some((list) => list !== undefined), AT_LEAST_ONE),
    ),
  ),
});

export type Match = v.InferOutput<typeof MatchSchema>;
export type Conditions = Omit<Match, "except">;

/** Lower-cased and in ASCII, as a URL's host name comes out of its parser. */
function parseHost(text: string): string | undefined {
  const [, wildcard = "", name = ""] = /^(\*\.)?([^*\s/:?#@\\]+)$/.exec(text) ?? [];
  const host = URL.parse(`http://${name}`)?.hostname.replace(/\.$/, "");
  return host ? wildcard + host : undefined;
}

/** Upper-cased, because requests are matched so. */
function parseMethod(text: string): string | undefined {
  return /^[A-Za-z][A-Za-z0-9-]*$/.test(text) ? text.toUpperCase() : undefined;
}

/** Nothing, `*`, a parameter (not `__proto__`, which Hono's objects do not keep) with or without a pattern, or a text that is none of these. */
const SEGMENT = /^(\*|:(?!__proto__\b)\w+(\{.+\})?\??|(?!\.{1,2}$)[^:*?{}][^*?{}]*)?$/;

function parseRoute(text: string): string | undefined {
  if (!text.startsWith("/") || /[\s#\\]/.test(text.replace(/\{.*\}/g, ""))) return undefined;
  const segments = splitRoute(text);
  // Braces that are not closed, or hold both braces and slashes, Hono divides where it should not.
  if (`/${segments.join("/")}` !== text) return undefined;
  const optional = segments.findIndex((segment) => segment.endsWith("?"));
  if (optional !== -1 && optional !== segments.length - 1) return undefined;
  return segments.every((segment) => SEGMENT.test(segment) && compiles(segment)) ? text : undefined;
}

/** The segments of a route, as Hono divides it: not at a slash within a parameter's `{pattern}`. */
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
