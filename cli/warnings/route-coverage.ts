import { splitRoute } from "../../src/config/route.ts";
import { canonicalPath } from "../../src/request/path.ts";

/** The segments of a route, in the canonical form that the matcher compares with paths. */
export type Segments = readonly string[];

/**
 * A pattern that cannot match a slash: letters, digits, character classes, groups and repetitions.
 * Any other pattern may match a slash, and then Hono lets one parameter match several segments of a
 * path.
 */
const WITHIN_SEGMENT =
  /^(?:[\w-]|\\[dw.-]|\[(?:\w(?:-\w)?)+-?\]|\(\?:|[()|?*+]|\{\d+(?:,\d*)?\})+$/;

/** Splits a route into segments. A route with an optional last parameter gives two lists. */
export function segmentsOf(route: string, caseSensitive: boolean): Segments[] {
  const segments = splitRoute(route)
    .flatMap((segment) => {
      if (/^[:*]/.test(segment)) return segment;
      return canonicalPath(`/${segment}`, caseSensitive).path.split("/");
    })
    .filter(Boolean);
  const last = segments.at(-1);
  if (!last?.endsWith("?") || !last.startsWith(":")) return [segments];
  return [segments.slice(0, -1), [...segments.slice(0, -1), last.slice(0, -1)]];
}

/**
 * Whether every path that matches `narrow` provably matches `wide` too. The result is false if
 * there is no proof. For example, two different regular expressions are not compared.
 */
export function routeCovers(wide: Segments, narrow: Segments, caseSensitive: boolean): boolean {
  if (wide.join("/") === narrow.join("/")) return true;
  const covers = (a: string, b: string) => segmentCovers(a, b, caseSensitive);
  if (wide.at(-1) !== "*") {
    return (
      narrow.at(-1) !== "*" &&
      wide.length === narrow.length &&
      wide.every((segment, index) => covers(segment, narrow[index] as string))
    );
  }
  const prefix = wide.slice(0, -1);
  const rest = narrow.at(-1) === "*" ? narrow.slice(0, -1) : narrow;
  // In Hono, `/a/*` includes `/a`, but `/*/*` does not include `/a`.
  if (prefix.at(-1) === "*" && rest.length === prefix.length) return false;
  return (
    prefix.length <= rest.length &&
    prefix.every((segment, index) => covers(segment, rest[index] as string))
  );
}

/** Whether provably no path matches both routes. */
export function routesDisjoint(a: Segments, b: Segments, caseSensitive: boolean): boolean {
  const length = Math.max(a.length, b.length);
  for (let index = 0; index < length; index++) {
    const [one, other] = [a[index], b[index]];
    if (isOpenEnded(one, index === a.length - 1)) return false;
    if (isOpenEnded(other, index === b.length - 1)) return false;
    if (one === undefined || other === undefined) {
      // A pattern that matches the empty text also matches `/`.
      const pattern = patternOf(one ?? other ?? "");
      return pattern === undefined || !matches(pattern, "", caseSensitive);
    }
    if (isLiteral(one) && isLiteral(other) && one !== other) return true;
    if (isLiteral(one) && isExcludedBy(other, one, caseSensitive)) return true;
    if (isLiteral(other) && isExcludedBy(one, other, caseSensitive)) return true;
  }
  return false;
}

/** Whether a segment of a route may match several segments of a path. */
function isOpenEnded(segment: string | undefined, isLast: boolean): boolean {
  if (segment === undefined) return false;
  if (segment === "*") return isLast;
  const pattern = patternOf(segment);
  return pattern !== undefined && !staysWithinSegment(pattern);
}

function isExcludedBy(segment: string, literal: string, caseSensitive: boolean): boolean {
  const pattern = patternOf(segment);
  return pattern !== undefined && !matches(pattern, literal, caseSensitive);
}

function segmentCovers(wide: string, narrow: string, caseSensitive: boolean): boolean {
  if (wide === "*" || wide === narrow) return isLiteral(narrow) || isOneSegment(narrow);
  if (isLiteral(wide)) return false;
  const pattern = patternOf(wide);
  if (pattern !== undefined) {
    if (!staysWithinSegment(pattern)) return false;
    return isLiteral(narrow)
      ? matches(pattern, narrow, caseSensitive)
      : patternOf(narrow) === pattern;
  }
  // A parameter without a pattern matches every segment except the empty segment of the path `/`.
  const narrower = patternOf(narrow);
  if (narrower !== undefined && matches(narrower, "", caseSensitive)) return false;
  return isLiteral(narrow) || (narrow !== "*" && isOneSegment(narrow));
}

function isOneSegment(segment: string): boolean {
  const pattern = patternOf(segment);
  return pattern === undefined || staysWithinSegment(pattern);
}

export function isLiteral(segment: string): boolean {
  return !/^[:*]/.test(segment);
}

function patternOf(segment: string): string | undefined {
  return /^:\w+\{(.+)\}$/s.exec(segment)?.[1];
}

function staysWithinSegment(pattern: string): boolean {
  if (!WITHIN_SEGMENT.test(pattern)) return false;
  // Hono adds `^` before and `$` after a pattern. So without a group, `a|b` becomes `^a|b$`, and no
  // alternative has both anchors.
  let depth = 0;
  for (const character of pattern) {
    if (character === "(") depth++;
    if (character === ")") depth--;
    if (character === "|" && depth === 0) return false;
  }
  return true;
}

function matches(pattern: string, text: string, caseSensitive: boolean): boolean {
  return new RegExp(`^(?:${pattern})$`, caseSensitive ? "" : "i").test(text);
}
