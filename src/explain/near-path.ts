import { splitRoute } from "../config/route.ts";
import { canonicalPath } from "../request/canonical-path.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { shownText } from "./shown-value.ts";

/** The maximum number of routes that are compared with a path. */
const MAX_ROUTES = 200;
/** The maximum number of segments that are compared. */
const MAX_SEGMENTS = 64;

/** Where a path and a route differ first. */
interface Difference {
  readonly route: string;
  readonly segments: readonly string[];
  /** The number of segments before the difference. */
  readonly equal: number;
}

/**
 * Returns where a path differs from the route that is nearest to it, as a sentence; undefined if their first
 * segments differ.
 */
export function pathNote(
  routes: readonly string[],
  { path }: CanonicalRequest,
  caseSensitivePaths: boolean,
): string | undefined {
  const sent = segmentsOf(path);
  const differences = routes.slice(0, MAX_ROUTES).map((route): Difference => {
    const segments = splitRoute(route).filter((segment) => segment !== "");
    return { route, segments, equal: countEqual(segments, sent, caseSensitivePaths) };
  });
  const distance = ({ segments }: Difference) => Math.abs(segments.length - sent.length);
  const [nearest] = differences.sort(
    (one, other) => other.equal - one.equal || distance(one) - distance(other),
  );
  return nearest && describe(nearest, sent, caseSensitivePaths);
}

function describe(
  { route, segments, equal }: Difference,
  sent: readonly string[],
  caseSensitivePaths: boolean,
): string | undefined {
  const [given, wanted] = [sent[equal], segments[equal]];
  const position = `segment ${equal + 1}`;
  if (given !== undefined && wanted !== undefined) {
    const fitsFolded = caseSensitivePaths && fits(wanted, given, false);
    if (fitsFolded) {
      return `In ${position} of ${route}, only upper and lower case differ, and caseSensitivePaths is true.`;
    }
    if (equal === 0) return undefined;
    return `The nearest path is ${route}: its ${position} is ${wanted}, not ${shownText(given)}.`;
  }
  if (equal === 0) return undefined;
  return given === undefined
    ? `The nearest path is ${route}: the request has no ${position}.`
    : `The nearest path is ${route}: the request has ${position} too, ${shownText(given)}.`;
}

/** Returns the first segments of a path. */
function segmentsOf(path: string): string[] {
  return path.split("/", MAX_SEGMENTS + 1).filter((segment) => segment !== "");
}

function countEqual(
  segments: readonly string[],
  sent: readonly string[],
  caseSensitivePaths: boolean,
): number {
  const length = Math.min(segments.length, sent.length, MAX_SEGMENTS);
  for (let index = 0; index < length; index++) {
    if (!fits(segments[index] as string, sent[index] as string, caseSensitivePaths)) return index;
  }
  return length;
}

/** Whether a segment of a canonical path fits a segment of a route. */
function fits(segment: string, sent: string, caseSensitive: boolean): boolean {
  if (segment === "*") return true;
  if (!segment.startsWith(":")) {
    const [wanted, given] = [segment, sent].map(
      (each) => canonicalPath(`/${each}`, caseSensitive).path,
    );
    return wanted === given;
  }
  const pattern = /\{(.+)\}/.exec(segment)?.[1];
  return (
    pattern === undefined || new RegExp(`^(?:${pattern})$`, caseSensitive ? "" : "i").test(sent)
  );
}
