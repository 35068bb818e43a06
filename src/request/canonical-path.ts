import { type CanonicalPath, PathReader } from "./path-reader.ts";
import { removeTrailingSlash } from "./path-variants.ts";

/** A path without any of this is canonical except for case and a trailing slash. */
const NEEDS_WORK = /[%;\\]|[^!-~]|\/[./]/;

/**
 * The most characters and segments of a sent path that needs work. Each of up to 40 variants takes time
 * for each of them, and one request must not delay the others of its isolate. The bounds allow 450
 * Chinese characters, which take nine characters each, and any key of S3 or R2 (1,024 bytes).
 */
const MAX_CHARACTERS = 4096;
const MAX_SEGMENTS = 128;

/** Text that splits a path, in its shorter spellings. Longer spellings count against `MAX_CHARACTERS`. */
const SEPARATORS = /[/\\]|%(?:25)*(?:2f|5c|u|c0|ef%bc)/gi;

/**
 * Brings a URL's path into the canonical form, which rules are matched against and paths are counted by:
 * escapes decoded (nested ones too), `\` as `/`, cut at a NUL, `;parameters` and white space at a
 * segment's end removed, `.`, `..` and empty segments resolved, no trailing slash, compatible characters
 * made equal, lower case unless `caseSensitive`. Bytes that are not UTF-8 stay escaped.
 *
 * Where origins read a path differently, the canonical form follows the origins to which the most
 * paths are equal, so that these paths share a counter. The other forms are variants. The time is
 * linear in the length of the path.
 *
 * @param pathname as the WHATWG URL parser returns it
 */
export function canonicalPath(pathname: string, caseSensitive: boolean): CanonicalPath {
  if (NEEDS_WORK.test(pathname)) return new PathReader(pathname, caseSensitive).read();
  const path = removeTrailingSlash(caseSensitive ? pathname : pathname.toLowerCase());
  return { path, isUnambiguous: true, variants: [path], unstrippedVariants: [] };
}

/** Whether paths together have too many characters or segments to compute their variants. */
export function isTooLong(...paths: string[]): boolean {
  const text = paths.filter((path) => NEEDS_WORK.test(path)).join("");
  if (text.length <= MAX_SEGMENTS) return false;
  return text.length > MAX_CHARACTERS || (text.match(SEPARATORS)?.length ?? 0) > MAX_SEGMENTS;
}
