import fc from "fast-check";
import { type CanonicalPath, canonicalPath, isTooLong } from "../../src/request/canonical-path.ts";
import { canonicalRequest } from "../../src/request/canonical-request.ts";
import { ORIGINS } from "../origins.ts";
import { inTime, property } from "../property.ts";

/** Readings that a path has at most. */
const MAX_READINGS = 33;
/** As long as Cloudflare lets a URL be. */
const MAX_LENGTH = 16 * 1024;

/** What paths are taken apart at, escaped, escaped twice and in characters that only look like it. */
const PIECES = [
  ..."/\\.;%?#:*{}|+~ \t",
  ...["//", "/./", "/../", "..", "%2e", "%2E%2e", "%2f", "%2F", "%5c", "%3b", "%3f", "%23", "%00"],
  ...["%25", "%252f", "%252e", "%25252e", "%%32f", "%u002f", "%u002e", "%25u006c", "%zz", "%2"],
  ...["%c0%af", "%e0%80%af", "%c1%ac", "%ff", "%e2%82", "%C4%B1", "%C4%B0", "%C2%AD", "%0a", "%20"],
  ...["%EF%BC%8F", "%EF%BC%8E", "%EF%BC%85", "%EF%BC%BC", "%EF%BB%BF", "%E2%80%8B", "%CC%81"],
  ...["a", "A", "login", "Login", "x", "é", "ß", "ı", "\u212a", "\ud83d\ude00", "l", "2", "5", "f"],
];

const piece = fc.oneof(
  { weight: 9, arbitrary: fc.constantFrom(...PIECES) },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 3 }) },
);
const pieces = fc.array(piece, { maxLength: 6 });

/** What a path is made of: repeated, for more than linear time shows where something is. */
const parts = fc.record({
  unit: pieces.map((parts) => parts.join("")),
  length: fc.oneof(
    { weight: 199, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.nat(MAX_LENGTH) },
  ),
  end: pieces.map((parts) => parts.join("")),
  caseSensitive: fc.boolean(),
});

/** What anybody may send as a path. */
export const pathsTarget = property(
  "paths",
  "a path has one canonical form, and a reading for each origin's way to read it",
  parts,
  ({ unit, length, end, caseSensitive }) => {
    const path = `/${unit.repeat(Math.ceil(length / (unit.length || 1)) || 1)}${end}`;
    const canonical = inTime(() => canonicalPath(path, caseSensitive));
    refuseOdd(canonical);
    const again = canonicalPath(canonical.path, caseSensitive).path;
    if (again !== canonical.path) throw new Error(`${canonical.path} is ${again} the second time`);
    for (const reading of canonical.variants) refuseOdd(canonicalPath(reading, caseSensitive));

    const url = URL.parse(`http://host${path}`)?.href;
    if (!url) return;
    const headers = new Headers();
    const request = { url, method: "GET", headers } as Request;
    const asked = canonicalRequest(request, caseSensitive);
    if (!asked && isTooLong(new URL(url).pathname)) return;
    if (!asked) throw new Error("a URL that is one is not readable");
    refuseOdd(asked);
    refuseUnread(new URL(url).pathname, asked, caseSensitive);
  },
);

function refuseOdd({ path, variants: readings, isUnambiguous: plain }: CanonicalPath): void {
  if (readings[0] !== path) throw new Error("the canonical form is not the first reading");
  if (readings.length > MAX_READINGS) throw new Error(`${readings.length} readings`);
  if (plain && readings.length > 1) throw new Error("a plain path has two readings");
  const odd = readings.find((reading) => !/^\/([^/]+(\/[^/]+)*)?$/.test(reading));
  if (odd !== undefined) throw new Error(`"${odd}" is not in canonical form`);
}

/** A rule for the path that an origin takes the request to be about has to be about the request. */
function refuseUnread(
  pathname: string,
  { variants: readings, path, isUnambiguous: plain }: CanonicalPath,
  caseSensitive: boolean,
): void {
  for (const [origin, reading] of Object.entries(ORIGINS)) {
    const route = routeFor(() => reading(pathname), caseSensitive);
    if (route === undefined) continue;
    if (!readings.includes(route)) {
      throw new Error(`an origin that ${origin} reads ${route}, but the readings are ${readings}`);
    }
    if (plain && route !== path) throw new Error(`plain, but an origin that ${origin} disagrees`);
  }
}

/** A rule's path in the form in which it is matched; undefined for what no rule can be written for. */
function routeFor(read: () => string, caseSensitive: boolean): string | undefined {
  let path: string;
  try {
    path = read();
  } catch {
    return undefined;
  }
  if (!path.startsWith("/") || /[\s#\\*:?{}%\0]/.test(path)) return undefined;
  const segments: string[] = [];
  for (const segment of path.split("/").filter(Boolean)) {
    const { path: written, variants: readings } = canonicalPath(`/${segment}`, caseSensitive);
    // A segment that is none, or two, to some origins: who writes a rule means something else.
    if (segment === "." || segment === ".." || readings.length > 1) return undefined;
    if (/^\/$|.\/|%/.test(written)) return undefined;
    segments.push(written.slice(1));
  }
  return `/${segments.join("/")}`;
}
