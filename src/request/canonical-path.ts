/** A path as rules see it. */
export interface CanonicalPath {
  /** The canonical form, which paths are counted by. */
  readonly path: string;
  /**
   * Whether every origin reads the path so. `/a%2f..%2fb`, `//a`, `/a;b` and `/%2561` are divided,
   * decoded and resolved in different orders by different servers.
   */
  readonly plain: boolean;
  /**
   * The canonical form and, where the path is not plain, what else it may be to an origin. A rule
   * that is about any of them is about the request.
   */
  readonly readings: readonly string[];
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
    const path = withoutTrailingSlash(fold(pathname));
    return { path, plain: true, readings: [path] };
  }
  const once = decode(pathname);
  const decoded = fold(decodeAll(once));
  const path = join(resolve(segmentsOf(decoded)));
  const plain =
    !pathname.includes("%25") &&
    pathname.split("/").length === once.split("/").length &&
    withoutTrailingSlash(fold(once)) === path;
  if (plain) return { path, plain, readings: [path] };
  const unresolved = join(segmentsOf(decoded));
  const undivided = join(pathname.split("/").map((segment) => asOne(fold(decodeAll(segment)))));
  return { path, plain, readings: [...new Set([path, unresolved, undivided])] };
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

function decodeAll(text: string): string {
  let decoded = text;
  for (let round = 0; round < DECODE_ROUNDS; round++) decoded = decode(decoded);
  return decoded;
}

/** A decoded path's segments: up to a NUL, divided by either slash, without what some ignore. */
function segmentsOf(decoded: string): string[] {
  const [readable = ""] = decoded.split("\0", 1);
  return readable.split(/[/\\]/).map(withoutParameters);
}

/** A decoded segment that an origin has divided off before it decoded: slashes do not divide it. */
function asOne(decoded: string): string {
  const [readable = ""] = decoded.split("\0", 1);
  return withoutParameters(readable).replace(/[/\\]/g, "%2f");
}

function withoutParameters(segment: string): string {
  return segment.replace(/;.*$/s, "").trimEnd();
}

function resolve(segments: readonly string[]): string[] {
  const resolved: string[] = [];
  for (const segment of segments) {
    if (segment === "..") resolved.pop();
    else if (segment !== "" && segment !== ".") resolved.push(segment);
  }
  return resolved;
}

function join(segments: readonly string[]): string {
  return `/${segments.filter((segment) => segment !== "").join("/")}`;
}

function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}
