import { splitRoutingPath } from "hono/utils/url";

/** Reading a route takes time that grows with the square of its length. */
export const MAX_ROUTE = 2048;

/**
 * A segment of a route: empty, `*`, a parameter with or without a pattern, or a literal text. A
 * parameter with the name `__proto__` is refused, because Hono stores parameters in an object,
 * where this name has another meaning.
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
