import {
  hasLiterals,
  mostResolved,
  undivided,
  undividedText,
  waysToDivide,
  waysToKeep,
} from "./path-variants.ts";
import {
  decodeEscapes,
  decodeRun,
  foldCase,
  folded,
  foldText,
  hasEscapes,
  isAscii,
  undoCareless,
  withoutBrokenBytes,
} from "./text-folding.ts";

/** A path as rules see it. */
export interface CanonicalPath {
  /** The canonical form, which paths are counted by. */
  readonly path: string;
  /**
   * Whether every origin reads the path so. `/a%2f..%2fb`, `//a`, `/a;b` and `/%2561` are divided,
   * decoded and resolved in different orders by different servers.
   */
  readonly isUnambiguous: boolean;
  /**
   * The canonical form and, where the path is not plain, what else it may be to an origin. A rule
   * that is about any of them is about the request.
   */
  readonly variants: readonly string[];
  /**
   * What the path is to an origin that knows no parameters, where that differs: `;x`, a NUL and
   * blanks are text of a segment. A rule that is about none of the readings may be about these; of
   * any other they change neither the path nor the parameters that it counts by.
   */
  readonly literal: readonly string[];
}

/** How often escapes are undone. Origins decode once, careless ones twice. */
const DECODE_ROUNDS = 3;

/** A path without any of this is canonical but for case and a trailing slash. */
const NEEDS_WORK = /[%;\\]|[^!-~]|\/[./]/;

/**
 * The most characters and segments of a path that needs work, as it is sent. Each of up to 40 readings
 * takes time for each of them, and one request must not take an isolate's time from others. It allows
 * 450 characters of Chinese, at nine for each, and any key of S3 or R2 (1,024 bytes).
 */
const MOST_CHARACTERS = 4096;
const MOST_SEGMENTS = 128;

/** What divides a path into segments, in its shorter spellings: longer ones are bounded by their length. */
const DIVIDERS = /[/\\]|%(?:25)*(?:2f|5c|u|c0|ef%bc)/gi;

/** A decoded path without any of this is the same to careless decoders. */
const CARELESS = /[^ -~]|%/;

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
    return { path, isUnambiguous: true, variants: [path], literal: [] };
  }
  // Segments come again in several readings.
  const known = new Map<string, string>();
  const fold = (text: string) => {
    const before = known.get(text);
    if (before !== undefined) return before;
    const result = foldText(text, caseSensitive);
    known.set(text, result);
    return result;
  };
  const once = decodeLevel(pathname);
  const decoded = decodeAll(once);
  const strict = fold(decoded);
  const careless = (
    CARELESS.test(decoded) ? folded(decodeCarelessly(once), caseSensitive) : strict
  ).replace(/[?#].*$/s, "");
  const path = mostResolved(careless);
  const readings = new Set([path]);
  for (const text of new Set([careless, strict])) {
    for (const reading of waysToDivide(text, asItIs)) readings.add(reading);
    const rest = afterAuthority(text);
    if (rest === undefined) continue;
    for (const reading of waysToDivide(rest, asItIs)) readings.add(reading);
  }
  // Compatible forms of slashes and dots are folded before a path is divided, or after.
  if (dividersIn(decoded) !== dividersIn(strict)) {
    for (const reading of waysToDivide(decoded, fold)) readings.add(reading);
  }
  // Some decode a single time, some take parameters off before; what is escaped still is no route's.
  const isNested = pathname.includes("%25");
  const less = isNested ? [decodeEscapes(pathname)] : [];
  if (pathname.includes(";")) less.push(decodeEscapes(pathname.replace(/;[^/]*/g, "")));
  for (const text of less) {
    if (text === decoded) continue;
    for (const reading of waysToDivide(text, fold)) {
      if (!reading.includes("%")) readings.add(reading);
    }
  }
  // Where decoding has divided or cut, an origin that divides first sees something else.
  const segments =
    slashesIn(strict) !== slashesIn(pathname) || /[\0?#]/.test(strict)
      ? pathname.split("/").map((segment) => fold(decodeAll(segment)))
      : undefined;
  if (segments) readings.add(undivided(segments));
  const whole = withoutBrokenBytes(careless);
  if (whole !== careless) readings.add(mostResolved(whole));
  const plain =
    readings.size === 1 &&
    !isNested &&
    slashesIn(pathname) === slashesIn(once) &&
    // Case alone makes an ASCII letter of `ı`, and few origins take it for one.
    isAscii(path) === isAscii(once) &&
    withoutTrailingSlash(caseSensitive ? once : foldCase(once)) === path;
  const literal = new Set<string>();
  if (hasLiterals(strict)) {
    const texts = [strict, careless, afterAuthority(strict)];
    if (once !== decoded) texts.push(fold(once));
    for (const text of new Set(texts)) {
      if (text === undefined) continue;
      for (const reading of waysToKeep(text, asItIs)) literal.add(reading);
    }
    if (dividersIn(decoded) !== dividersIn(strict)) {
      for (const reading of waysToKeep(decoded, fold)) literal.add(reading);
    }
    if (segments) literal.add(undividedText(segments));
    for (const reading of readings) literal.delete(reading);
  }
  return { path, isUnambiguous: plain, variants: [...readings], literal: [...literal] };
}

/** Whether paths are together too long, or divided too often, to be brought into all their readings. */
export function isTooLong(...paths: string[]): boolean {
  const odd = paths.filter((path) => NEEDS_WORK.test(path)).join("");
  if (odd.length <= MOST_SEGMENTS) return false;
  return odd.length > MOST_CHARACTERS || (odd.match(DIVIDERS)?.length ?? 0) > MOST_SEGMENTS;
}

/** The same for what has been decoded before, where the rest may well be bytes that are no text. */
function decode(text: string): string {
  return hasEscapes(text) ? decodeLevel(text) : text;
}

/** Undoes one level of escapes, of `%25` however many: their nesting is what would take long. */
function decodeLevel(text: string): string {
  if (!text.includes("%25")) return decodeEscapes(text);
  return text.replace(/(?:%(?:25)*[0-9a-f]{2})+/gi, (escapes) =>
    decodeRun(escapes.replace(/%(?:25)+(?=[0-9a-f]{2})/gi, "%")),
  );
}

function decodeAll(text: string): string {
  let decoded = text;
  for (let round = 0; round < DECODE_ROUNDS && decoded.includes("%"); round++) {
    const next = decode(decoded);
    if (next === decoded) break;
    decoded = next;
  }
  return decoded;
}

/** In each round, what careless decoders make of the text may be an escape again. Folds letters, but not case. */
function decodeCarelessly(text: string): string {
  let decoded = text;
  for (let round = 0; round < DECODE_ROUNDS; round++) {
    // What folding has made of other percent signs is written in one case by decoding alone.
    const once = round === 0 ? decode(decoded) : decodeLevel(decoded);
    const next = foldText(undoCareless(once), true);
    if (next === decoded) break;
    decoded = next;
  }
  return decoded;
}

/** What a path is divided, resolved and cut by, without the rest. */
function dividersIn(text: string): string {
  return text.replace(/[^/\\.;\0\s%]+/g, "");
}

/**
 * The path of a network-path reference: to an origin that resolves its request's target as a URL,
 * `//host/login` is `/login`, and so is `///host/login`.
 *
 * @returns undefined when the text does not begin with two slashes
 */
function afterAuthority(text: string): string | undefined {
  return /^[/\\]{2,}[^/\\]*(.*)$/s.exec(text)?.[1];
}

function asItIs(text: string): string {
  return text;
}

function slashesIn(text: string): number {
  let slashes = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x2f || code === 0x5c) slashes++;
  }
  return slashes;
}

function withoutTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}
