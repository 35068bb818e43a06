import type { CanonicalRequest } from "../request/canonical-request.ts";

/** Matches the start of a route whose canonical form differs from it at most by case. */
const LITERAL = /^[\w/~-]*/;

/**
 * Returns a function that tests whether a rule's routes may match the path of a request, by the segments before
 * the first parameter or wildcard. The test needs no router. Most rules of a large configuration fail it, and
 * building a router for thousands of routes takes longer than all else in an explanation.
 *
 * @returns a function that returns false only if no route matches
 */
export function createRouteTest(
  { variants, unstrippedVariants }: CanonicalRequest,
  caseSensitivePaths: boolean,
): (routes: readonly string[] | undefined) => boolean {
  const paths = [...variants, ...unstrippedVariants].map((path) => `${path}/`);
  const mayMatch = (route: string): boolean => {
    const start = literalStart(route);
    const folded = caseSensitivePaths ? start : start.toLowerCase();
    return paths.some((path) => path.startsWith(folded));
  };
  return (routes) => routes?.some(mayMatch) ?? true;
}

/** Returns the whole literal segments at the start of a route, with a slash at the end. */
function literalStart(route: string): string {
  const [literal = ""] = LITERAL.exec(route) ?? [];
  const isWhole = literal.length === route.length;
  const start = isWhole ? `${literal}/` : literal.slice(0, literal.lastIndexOf("/") + 1);
  // Empty segments of a route are ignored.
  return start.includes("//") ? start.replace(/\/+/g, "/") : start;
}
