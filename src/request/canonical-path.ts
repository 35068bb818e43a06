import { type CanonicalPath, PathReader } from "./path-reader.ts";
import { removeTrailingSlash } from "./path-variants.ts";

/**
 * Matches paths that may not be canonical. All other paths are canonical, except for case and a
 * trailing slash.
 */
const NEEDS_WORK = /[%;\\]|[^!-~]|\/[./]/;

/**
 * The maximum numbers of characters and segments in the path of a request, if the path matches
 * `NEEDS_WORK`. Such a path has up to 44 variants, and up to 31 further variants for origins that
 * do not know path parameters. Computing each variant takes time in proportion to the path's
 * length. Without these maximums, one request could delay the other requests of its isolate. The
 * maximums allow 450 Chinese characters (each takes nine characters when it is escaped), and any
 * key of S3 or R2 (1,024 bytes).
 */
export const MAX_CHARACTERS = 4096;
export const MAX_SEGMENTS = 128;

/**
 * Matches the short spellings of segment separators. The longer spellings are not matched, because
 * `MAX_CHARACTERS` limits their number.
 */
const SEPARATORS = /[/\\]|%(?:25)*(?:2f|5c|u|c0|ef%bc)/gi;

/**
 * Brings a URL's path into the canonical form. Weir matches rules against this form and uses it in
 * keys. Escapes are decoded, including nested escapes. `\` becomes `/`. A NUL ends the path.
 * `;parameters` and white space at the end of a segment are removed. `.`, `..` and empty segments
 * are resolved, and a trailing slash is removed. Compatible characters become equal, and upper case
 * becomes lower case unless `caseSensitive` is true. Bytes that are not UTF-8 stay escaped.
 *
 * If origins read a path in different ways, the canonical form is the reading that makes the most
 * paths equal, so that these paths share a counter. The variants contain the other readings too.
 * The computation takes time in proportion to the length of the path.
 *
 * @param pathname the path as the WHATWG URL parser returns it
 */
export function canonicalPath(pathname: string, caseSensitive: boolean): CanonicalPath {
  if (NEEDS_WORK.test(pathname)) return new PathReader(pathname, caseSensitive).read();
  const path = removeTrailingSlash(caseSensitive ? pathname : pathname.toLowerCase());
  return { path, isUnambiguous: true, variants: [path], unstrippedVariants: [] };
}

/**
 * Whether the given paths in total exceed `MAX_CHARACTERS` or `MAX_SEGMENTS`. Ignores paths that do
 * not match `NEEDS_WORK`.
 */
export function isTooLong(...paths: string[]): boolean {
  const text = paths.filter((path) => NEEDS_WORK.test(path)).join("");
  if (text.length <= MAX_SEGMENTS) return false;
  return text.length > MAX_CHARACTERS || (text.match(SEPARATORS)?.length ?? 0) > MAX_SEGMENTS;
}
