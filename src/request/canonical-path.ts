import { type CanonicalPath, PathReader } from "./path-reader.ts";
import { removeTrailingSlash } from "./path-variants.ts";

/** A path without a match is canonical, except for its case and a trailing slash. */
const NEEDS_WORK = /[%;\\]|[^!-~]|\/[./]/;

/**
 * The most characters and segments of a sent path that needs work. Each of up to 40 variants takes time
 * in proportion, and one request must not delay the other requests of its isolate. The bounds allow 450
 * Chinese characters, which take nine characters each, and any key of S3 or R2 (1,024 bytes).
 */
const MAX_CHARACTERS = 4096;
const MAX_SEGMENTS = 128;

/** Separators of segments in their shorter spellings. `MAX_CHARACTERS` limits the longer ones. */
const SEPARATORS = /[/\\]|%(?:25)*(?:2f|5c|u|c0|ef%bc)/gi;

/**
 * Brings a URL's path into the canonical form, by which rules match and count it. Escapes are decoded,
 * nested ones too. `\` becomes `/`. A NUL ends the path. `;parameters` and white space at the end of a
 * segment are removed. `.`, `..` and empty segments are resolved, and a trailing slash is removed.
 * Compatible characters become equal, and upper case becomes lower case unless `caseSensitive`. Bytes
 * that are not UTF-8 stay escaped.
 *
 * Where origins read a path differently, the canonical form is the one that makes the most paths equal,
 * so that these paths share a counter. The other forms are variants. The time is linear in the length of
 * the path.
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
