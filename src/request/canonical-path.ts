import { mostResolved, undivided, waysToDivide } from "./path-readings.ts";
import { foldCase, foldText, isAscii, undoCareless, withoutBrokenBytes } from "./text-forms.ts";

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
const NEEDS_WORK = /[%;\\]|[^!-~]|\/[./]/;

/**
 * Writes a URL's path in the one form that rules are matched against and paths are counted by:
 * escapes undone (nested ones too), `\` as `/`, cut at a NUL, `;parameters` and white space at a
 * segment's end removed, `.`, `..` and empty segments resolved, no trailing slash, compatible
 * characters as one, lower case unless `caseSensitive`. Of what origins read in two ways, this is
 * the way of those that take most for the same, so that what is counted by it has one counter;
 * the others are among the readings. Bytes that are not UTF-8 stay escaped. Takes time linear in
 * its length.
 *
 * @param pathname as the WHATWG URL parser gives it
 */
export function canonicalPath(pathname: string, caseSensitive: boolean): CanonicalPath {
  if (!NEEDS_WORK.test(pathname)) {
    const path = withoutTrailingSlash(caseSensitive ? pathname : pathname.toLowerCase());
    return { path, plain: true, readings: [path] };
  }
  const fold = (text: string) => foldText(text, caseSensitive);
  const once = decode(pathname);
  const decoded = decodeAll(once);
  const strict = fold(decoded);
  const careless = fold(decodeCarelessly(once)).replace(/[?#].*$/s, "");
  const path = mostResolved(careless);
  const readings = new Set([path]);
  // Compatible forms of slashes and dots are folded before a path is divided, or after.
  const texts = new Set([careless, strict, decoded]);
  for (const text of texts) {
    for (const reading of waysToDivide(text, fold)) readings.add(reading);
  }
  // Some decode a single time, some take parameters off before; what is escaped still is no route's.
  for (const text of [pathname, pathname.replace(/;[^/]*/g, "")].map(decodeOnce)) {
    if (texts.has(text)) continue;
    for (const reading of waysToDivide(text, fold)) {
      if (!reading.includes("%")) readings.add(reading);
    }
  }
  // Where decoding has divided or cut, an origin that divides first sees something else.
  if (/[\0?#]/.test(strict) || slashesIn(strict) !== slashesIn(pathname)) {
    readings.add(undivided(pathname, (segment) => fold(decodeAll(segment))));
  }
  const whole = withoutBrokenBytes(careless);
  if (whole !== careless) readings.add(mostResolved(whole));
  const plain =
    readings.size === 1 &&
    !pathname.includes("%25") &&
    slashesIn(pathname) === slashesIn(once) &&
    // Case alone makes an ASCII letter of `ı`, and few origins take it for one.
    isAscii(path) === isAscii(once) &&
    withoutTrailingSlash(caseSensitive ? once : foldCase(once)) === path;
  return { path, plain, readings: [...readings] };
}

/** Undoes one level of escapes, of `%25` however many: their nesting is what would take long. */
function decode(text: string): string {
  if (!text.includes("%")) return text;
  return text.replace(/(?:%(?:25)*[0-9a-f]{2})+/gi, (escapes) =>
    unescaped(escapes.replace(/%(?:25)+(?=[0-9a-f]{2})/gi, "%")),
  );
}

/** Undoes one level of escapes, as a server does that knows of no other. */
function decodeOnce(text: string): string {
  return text.includes("%") ? text.replace(/(?:%[0-9a-f]{2})+/gi, unescaped) : text;
}

function unescaped(escapes: string): string {
  // Asked first, since thousands of exceptions would take long.
  if (UTF8.test(escapes)) return decodeURIComponent(escapes);
  // Not UTF-8 as a whole: the ASCII among it is all that can be read.
  return escapes.toUpperCase().replace(/%[0-7][0-9A-F]/g, decodeURIComponent);
}

/** Escapes of what decodeURIComponent takes for UTF-8 (RFC 3629, 4). */
const UTF8 = new RegExp(
  `^(?:${[
    "%[0-7].",
    "%(?:C[2-9A-F]|D.)<>",
    "%E0%[AB].<>",
    "%(?:E[1-9ABCEF]<>|ED%[89].)<>",
    "%F0%[9AB].<><>",
    "%(?:F[1-3]<>|F4%8.)<><>",
  ]
    .join("|")
    .replaceAll("<>", "%[89AB].")})+$`,
  "i",
);

function decodeAll(text: string): string {
  return inRounds(text, decode);
}

/** In each round too what comes out of careless decoders, which may be an escape again. */
function decodeCarelessly(text: string): string {
  return inRounds(text, (coded) => foldText(undoCareless(decode(coded)), true));
}

function inRounds(text: string, decodeOnce: (coded: string) => string): string {
  let decoded = text;
  for (let round = 0; round < DECODE_ROUNDS; round++) {
    const next = decodeOnce(decoded);
    if (next === decoded) break;
    decoded = next;
  }
  return decoded;
}

function slashesIn(text: string): number {
  return text.split(/[/\\]/).length;
}

function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}
