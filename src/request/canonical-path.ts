/** A path as rules see it. The origin always gets the one that the client sent. */
export interface CanonicalPath {
  readonly path: string;
  /**
   * Whether every origin would read the path so. `/a%2fb`, `//a`, `/a;b` or `/%2561` are read in
   * one way by some and otherwise by others: rules still match the canonical form, but `except`
   * does not hold for them, or it would be a way around its rule.
   */
  readonly plain: boolean;
}

/** How often escapes are undone. Origins decode once, careless ones twice. */
const DECODE_ROUNDS = 3;

/** A path without any of this is canonical but for case and a trailing slash. */
const NEEDS_WORK = /[%;\\\s]|\/[./]/;

/**
 * Writes a URL's path in the one form that rules are matched against and paths are counted by:
 * escapes undone (nested ones too), `\` as `/`, cut at a NUL, `;parameters` and white space at a
 * segment's end removed, `.`, `..` and empty segments resolved, no trailing slash, lower case
 * unless `caseSensitive`. Bytes that are not UTF-8 stay escaped. Takes time linear in its length.
 *
 * @param pathname as the WHATWG URL parser gives it
 */
export function canonicalPath(pathname: string, caseSensitive: boolean): CanonicalPath {
  const fold = (text: string) => (caseSensitive ? text : text.toLowerCase());
  if (!NEEDS_WORK.test(pathname)) {
    return { path: withoutTrailingSlash(fold(pathname)), plain: true };
  }
  const once = decode(pathname);
  let decoded = once;
  for (let round = 1; round < DECODE_ROUNDS; round++) decoded = decode(decoded);
  const path = resolve(fold(decoded));
  const plain =
    !pathname.includes("%25") &&
    slashes(once) === slashes(pathname) &&
    withoutTrailingSlash(fold(once)) === path;
  return { path, plain };
}

/** Undoes one level of escapes, of `%25` however many: their nesting is what would take long. */
function decode(text: string): string {
  if (!text.includes("%")) return text;
  return text.replace(/(?:%(?:25)*[0-9a-f]{2})+/gi, (escapes) => {
    const unnested = escapes.replace(/%(?:25)+(?=[0-9a-f]{2})/gi, "%");
    try {
      return decodeURIComponent(unnested);
    } catch {
      // Not UTF-8 as a whole: the ASCII among it is all that can be read.
      return unnested.toUpperCase().replace(/%[0-7][0-9A-F]/g, decodeURIComponent);
    }
  });
}

function resolve(decoded: string): string {
  const [readable = ""] = decoded.split("\0", 1);
  const segments: string[] = [];
  for (const raw of readable.split(/[/\\]/)) {
    const segment = raw.replace(/;.*$/s, "").trimEnd();
    if (segment === "" || segment === ".") continue;
    if (segment === "..") segments.pop();
    else segments.push(segment);
  }
  return `/${segments.join("/")}`;
}

function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

function slashes(text: string): number {
  return text.split("/").length;
}
