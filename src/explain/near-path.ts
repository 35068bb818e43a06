import { splitRoute } from "../config/route.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { canonicalPath } from "../request/path.ts";
import { shownText } from "./shown-value.ts";

/** The maximum number of routes of all rules together that are compared with one path. */
export const MAX_ROUTES = 1000;
/** The maximum number of segments of all routes together that are compared. */
export const MAX_COMPARISONS = 4000;
/** The maximum lengths of a path and of a route that are compared, in characters. */
export const MAX_LENGTH = 1024;

/** Where a path and a route differ first. */
interface Difference {
  readonly route: string;
  readonly segments: readonly string[];
  /** The number of segments before the difference. */
  readonly equal: number;
}

/**
 * Finds the routes that are nearest to the path of one request. Some configurations have thousands of routes, so
 * the work for all rules together is bounded. The rules after that have no note.
 */
export class NearPaths {
  readonly #sent: readonly string[];
  readonly #isShort: boolean;
  readonly #caseSensitive: boolean;
  #routes = 0;
  #comparisons = 0;

  constructor({ path }: CanonicalRequest, caseSensitive: boolean) {
    this.#isShort = path.length <= MAX_LENGTH;
    this.#sent = this.#isShort ? path.split("/").filter((segment) => segment !== "") : [];
    this.#caseSensitive = caseSensitive;
  }

  /** The number of segments that have been compared. */
  get comparisons(): number {
    return this.#comparisons;
  }

  /**
   * Returns where the path differs from the route that is nearest to it, as a sentence; undefined if their first
   * segments differ, or if the bounds are reached.
   */
  noteOf(routes: readonly string[]): string | undefined {
    if (!this.#isShort) return undefined;
    let nearest: Difference | undefined;
    for (const route of routes) {
      if (this.#routes >= MAX_ROUTES || this.#comparisons >= MAX_COMPARISONS) break;
      this.#routes += 1;
      if (route.length > MAX_LENGTH) continue;
      const difference = this.#differenceFrom(route);
      if (!nearest || this.#isNearer(difference, nearest)) nearest = difference;
    }
    return nearest && this.#describe(nearest);
  }

  #differenceFrom(route: string): Difference {
    const segments = splitRoute(route).filter((segment) => segment !== "");
    const length = Math.min(segments.length, this.#sent.length);
    let equal = 0;
    while (equal < length && this.#fits(segments[equal] as string, this.#sent[equal] as string)) {
      equal += 1;
    }
    return { route, segments, equal };
  }

  #isNearer(one: Difference, other: Difference): boolean {
    const distance = ({ segments }: Difference) => Math.abs(segments.length - this.#sent.length);
    return (
      one.equal > other.equal || (one.equal === other.equal && distance(one) < distance(other))
    );
  }

  #describe({ route, segments, equal }: Difference): string | undefined {
    const [given, wanted] = [this.#sent[equal], segments[equal]];
    const position = `segment ${equal + 1}`;
    const name = shownText(route);
    if (given !== undefined && wanted !== undefined) {
      if (this.#caseSensitive && fitsSegment(wanted, given, false)) {
        return `In ${position} of ${name}, only upper and lower case differ, and caseSensitivePaths is true.`;
      }
      if (equal === 0) return undefined;
      return `The nearest path is ${name}: its ${position} is ${shownText(wanted)}, not ${shownText(given)}.`;
    }
    if (equal === 0) return undefined;
    return given === undefined
      ? `The nearest path is ${name}: the request has no ${position}.`
      : `The nearest path is ${name}: the request has ${position} too, ${shownText(given)}.`;
  }

  /** Whether a segment of the path fits a segment of a route. */
  #fits(segment: string, sent: string): boolean {
    this.#comparisons += 1;
    if (segment === "*" || segment === sent) return true;
    return fitsSegment(segment, sent, this.#caseSensitive);
  }
}

/** Whether a segment of a canonical path fits a segment of a route. */
function fitsSegment(segment: string, sent: string, caseSensitive: boolean): boolean {
  if (!segment.startsWith(":")) {
    return canonicalSegment(segment, caseSensitive) === canonicalSegment(sent, caseSensitive);
  }
  const pattern = /\{(.+)\}/.exec(segment)?.[1];
  return !pattern || new RegExp(`^(?:${pattern})$`, caseSensitive ? "" : "i").test(sent);
}

/** Returns a literal segment in the form of canonical paths, without a slash. */
function canonicalSegment(segment: string, caseSensitive: boolean): string {
  return canonicalPath(`/${segment}`, caseSensitive).path.slice(1);
}
