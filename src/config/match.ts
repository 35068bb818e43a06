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
      v.check((except) => Object.keys(except).length > 0, AT_LEAST_ONE),
    ),
  ),
});

export type Match = v.InferOutput<typeof MatchSchema>;
export type Conditions = Omit<Match, "except">;

/** Lower-cased and in ASCII, as a URL's host name comes out of its parser. */
function parseHost(text: string): string | undefined {
  const [, wildcard = "", name = ""] = /^(\*\.)?([^*\s/:?#@\\]+)$/.exec(text) ?? [];
  const url = URL.parse(`http://${name}`);
  return url?.hostname && name !== "" ? wildcard + url.hostname.replace(/\.$/, "") : undefined;
}

/** RFC 9110 token. Upper-cased, because requests are matched so. */
function parseMethod(text: string): string | undefined {
  return /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(text) ? text.toUpperCase() : undefined;
}

const SEGMENT = /^(\*|:\w+(\{.+\})?\??|[^:*?{}][^*?{}]*)?$/;

function parseRoute(text: string): string | undefined {
  if (!text.startsWith("/") || /[\s#\\]/.test(text.replace(/\{[^}]*\}/g, ""))) return undefined;
  const segments = splitRoute(text);
  const optional = segments.findIndex((segment) => segment.endsWith("?"));
  if (!segments.every((segment) => SEGMENT.test(segment))) return undefined;
  if (optional !== -1 && optional !== segments.length - 1) return undefined;
  return segments.every(compiles) ? text : undefined;
}

/** The segments of a route; a slash within a parameter's `{pattern}` divides nothing. */
export function splitRoute(route: string): string[] {
  return route.slice(1).match(/(?:\{[^}]*\}|[^/{])+|(?<=\/|^)(?=\/|$)/g) ?? [];
}

function compiles(segment: string): boolean {
  const pattern = /\{(.+)\}/.exec(segment)?.[1];
  try {
    new RegExp(pattern ?? "");
    return true;
  } catch {
    return false;
  }
}
