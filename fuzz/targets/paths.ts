import fc from "fast-check";
import { canonicalRequest } from "../../src/request/canonical-request.ts";
import { type CanonicalPath, canonicalPath, isTooLong } from "../../src/request/path.ts";
import { ORIGINS } from "../origins.ts";
import { createTarget, inTime } from "../property.ts";

/**
 * The maximum number of variants of a path. Four of seven forms come from strict and lenient decoders, with and without
 * an authority. One form is not folded, and two are decoded less. Each form has up to six variants, because origins
 * split, strip and resolve it in different orders. An origin that splits first, and one that drops invalid bytes, add a
 * variant each.
 */
const MAX_VARIANTS = 7 * 6 + 2;
/** The maximum length of a URL that Cloudflare accepts, in characters. */
const MAX_LENGTH = 16 * 1024;

/** Letters, and characters that split or end paths: plain, escaped once or twice, or replaced by similar ones. */
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

/**
 * The parts of a path: `unit`, which is repeated to a length of approximately `length`, and then `end`. A few paths are
 * very long, to show whether the time for a path grows faster than its length.
 */
const parts = fc.record({
  unit: pieces.map((parts) => parts.join("")),
  length: fc.oneof(
    { weight: 199, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.nat(MAX_LENGTH) },
  ),
  end: pieces.map((parts) => parts.join("")),
  caseSensitive: fc.boolean(),
});

/** The target for paths. A client may send any path. */
export const pathsTarget = createTarget(
  "paths",
  "a path has one canonical form, and a variant for each way in which an origin reads it",
  parts,
  ({ unit, length, end, caseSensitive }) => {
    const path = `/${unit.repeat(Math.ceil(length / (unit.length || 1)) || 1)}${end}`;
    const canonical = inTime(() => canonicalPath(path, caseSensitive));
    checkForm(canonical);
    const again = canonicalPath(canonical.path, caseSensitive).path;
    if (again !== canonical.path)
      throw new Error(`${canonical.path} becomes ${again} the second time`);
    for (const variant of canonical.variants) checkForm(canonicalPath(variant, caseSensitive));

    const url = URL.parse(`http://host${path}`)?.href;
    if (!url) return;
    const headers = new Headers();
    const request = { url, method: "GET", headers } as Request;
    const read = canonicalRequest(request, caseSensitive);
    if (!read && isTooLong(new URL(url).pathname)) return;
    if (!read) throw new Error("a valid URL is refused");
    checkForm(read);
    checkVariants(new URL(url).pathname, read, caseSensitive);
  },
);

function checkForm({ path, variants, isUnambiguous }: CanonicalPath): void {
  if (variants[0] !== path) throw new Error("the canonical form is not the first variant");
  if (variants.length > MAX_VARIANTS) throw new Error(`${variants.length} variants`);
  if (isUnambiguous && variants.length > 1) throw new Error("an unambiguous path has two variants");
  const wrong = variants.find((variant) => !/^\/([^/]+(\/[^/]+)*)?$/.test(variant));
  if (wrong !== undefined) throw new Error(`"${wrong}" is not in canonical form`);
}

/** Checks that the path that each kind of origin reads is one of the variants, so that a rule for this path matches. */
function checkVariants(
  pathname: string,
  { variants, path, isUnambiguous }: CanonicalPath,
  caseSensitive: boolean,
): void {
  for (const [origin, readPath] of Object.entries(ORIGINS)) {
    const route = routeFor(() => readPath(pathname), caseSensitive);
    if (route === undefined) continue;
    if (!variants.includes(route)) {
      throw new Error(`an origin that ${origin} reads ${route}, but the variants are ${variants}`);
    }
    if (isUnambiguous && route !== path) {
      throw new Error(`an origin that ${origin} reads the unambiguous path as ${route}`);
    }
  }
}

/**
 * Returns the path that an origin reads, in the form in which Weir matches it. Returns undefined if
 * the origin refuses the request, or if no rule can be written for the path.
 */
function routeFor(readPath: () => string, caseSensitive: boolean): string | undefined {
  let path: string;
  try {
    path = readPath();
  } catch {
    return undefined;
  }
  if (!path.startsWith("/") || /[\s#\\*:?{}%\0]/.test(path)) return undefined;
  const segments: string[] = [];
  for (const segment of path.split("/").filter(Boolean)) {
    const { path: written, variants } = canonicalPath(`/${segment}`, caseSensitive);
    // Some origins read this segment as no segment or as two segments, so no rule can be written
    // for the path.
    if (segment === "." || segment === ".." || variants.length > 1) return undefined;
    if (/^\/$|.\/|%/.test(written)) return undefined;
    segments.push(written.slice(1));
  }
  return `/${segments.join("/")}`;
}
