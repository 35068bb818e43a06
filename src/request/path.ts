import {
  decodeEscapeRun,
  decodeEscapes,
  decodeNonStandard,
  foldCase,
  foldNormalized,
  foldText,
  hasDecodableEscapes,
  isAscii,
  removeInvalidUtf8,
} from "./text-folding.ts";

/** The maximum number of decoding rounds. Careless origins decode twice. */
const DECODE_ROUNDS = 3;

/**
 * Decodes one level of escapes. A repeated `%25`, as in `%2525252f`, counts as one level, because decoding many
 * levels one by one would take long.
 */
export function decodeLevel(text: string): string {
  if (!text.includes("%25")) return decodeEscapes(text);
  return text.replace(/(?:%(?:25)*[0-9a-f]{2})+/gi, (escapes) =>
    decodeEscapeRun(escapes.replace(/%(?:25)+(?=[0-9a-f]{2})/gi, "%")),
  );
}

/** Decodes a path until nothing changes, in at most `DECODE_ROUNDS` rounds. */
function decodeAll(text: string): string {
  let decoded = text;
  for (let round = 0; round < DECODE_ROUNDS && decoded.includes("%"); round++) {
    const next = decodeNextLevel(decoded);
    if (next === decoded) break;
    decoded = next;
  }
  return decoded;
}

/**
 * Decodes a path as lenient decoders do. There are several rounds, because the result of a round may contain new
 * escapes. Also folds compatible characters, but not case.
 *
 * @param once the path after one call of {@link decodeLevel}
 */
export function decodeLeniently(once: string): string {
  let decoded = once;
  for (let round = 0; round < DECODE_ROUNDS; round++) {
    // Folding may have created new escapes from a full-width `％`. If these escapes are invalid, `decodeLevel` writes
    // them in upper case, and `decodeNextLevel` would not.
    const standard = round === 0 ? decodeNextLevel(decoded) : decodeLevel(decoded);
    const next = foldText(decodeNonStandard(standard), true);
    if (next === decoded) break;
    decoded = next;
  }
  return decoded;
}

/** Decodes one more level of escapes, if the text still contains escapes of valid UTF-8. */
function decodeNextLevel(text: string): string {
  return hasDecodableEscapes(text) ? decodeLevel(text) : text;
}

/**
 * Returns the variants of a decoded path for origins that strip path parameters. These origins differ in three ways:
 * whether they read `\` as a slash, whether they resolve dots, and whether they strip parameters before they resolve
 * dots. If an origin resolves dots first, `..` may remove a segment `;x` instead of the segment before it.
 *
 * @param fold a function that folds the characters of a segment, if the text is not folded yet
 */
function strippedVariants(decoded: string, fold: (text: string) => string): string[] {
  const text = cutAtNul(decoded);
  return separatorsIn(text).flatMap((separator) => {
    const segments = text.split(separator).filter(Boolean);
    const stripped = segments.map((segment) => stripSegment(fold(segment)));
    // Without dots there is nothing to resolve.
    if (!DOTS.test(text)) return [join(stripped)];
    const strippedLast = resolveDots(segments).map((segment) => stripSegment(fold(segment)));
    return [join(resolveDots(stripped)), join(stripped), join(strippedLast)];
  });
}

/**
 * Returns the variants of a decoded path for origins that do not know path parameters. For these origins, `;x`, a NUL
 * and blanks are part of a segment's text. One variant lacks semicolons, NULs and blanks at the start of each
 * segment, because programs may strip them from a segment.
 *
 * @param fold as for {@link strippedVariants}
 */
function unstrippedVariants(decoded: string, fold: (text: string) => string): string[] {
  return separatorsIn(decoded).flatMap((separator) => {
    const segments = decoded.split(separator).map((segment) => escapeSlashes(fold(segment)));
    const variants = [join(segments)];
    if (DOTS.test(decoded)) variants.push(join(resolveDots(segments)));
    if (segments.some((segment) => STRIPPED_FROM_START.test(segment))) {
      const trimmed = segments.map((segment) => segment.replace(STRIPPED_FROM_START, ""));
      variants.push(join(trimmed.map(removeParameters)));
    }
    return variants;
  });
}

/** Returns the canonical form of a decoded path: the variant that makes the most paths equal. */
function canonicalVariant(decoded: string): string {
  const segments = cutAtNul(decoded).split(/[/\\]/).filter(Boolean);
  return join(resolveDots(segments.map(removeParameters)));
}

/** Returns the variant for an origin that splits the path, and then decodes and strips each segment. */
function joinStripped(segments: readonly string[]): string {
  return join(segments.map((segment) => stripSegment(cutAtNul(segment))));
}

function removeTrailingSlash(path: string): string {
  return path.length > 1 && path.endsWith("/") ? path.slice(0, -1) : path;
}

/** Matches a full stop in any of its forms, or a character that consists of two or three dots. */
const DOTS = /[.\u2024-\u2026\ufe19\ufe30\ufe52\uff0e]/;

/** Matches text that some programs strip from the start of a segment. */
const STRIPPED_FROM_START = /^[;\0\s]+/;

function separatorsIn(decoded: string): (string | RegExp)[] {
  return decoded.includes("\\") ? [/[/\\]/, "/"] : ["/"];
}

function cutAtNul(decoded: string): string {
  return decoded.split("\0", 1)[0] ?? "";
}

/** Removes a segment's parameters, and escapes its slashes, because the origin has already split the path. */
function stripSegment(segment: string): string {
  return escapeSlashes(removeParameters(segment));
}

function escapeSlashes(segment: string): string {
  return /[/\\]/.test(segment) ? segment.replace(/[/\\]/g, "%2f") : segment;
}

function removeParameters(segment: string): string {
  const end = segment.indexOf(";");
  return (end === -1 ? segment : segment.slice(0, end)).trimEnd();
}

function resolveDots(segments: readonly string[]): string[] {
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

/** A path, and all forms in which origins may read it. */
export interface CanonicalPath {
  /** The canonical form, which keys and counters use. */
  readonly path: string;
  /**
   * Whether every origin reads the path in this form. Paths such as `/a%2f..%2fb`, `//a`, `/a;b`
   * and `/%2561` are ambiguous, because servers split, decode and resolve them in different orders.
   */
  readonly isUnambiguous: boolean;
  /**
   * All forms in which an origin may read the path, the canonical form first. A rule matches the request if it
   * matches any of these forms.
   */
  readonly variants: readonly string[];
  /**
   * Further forms, for origins that do not know path parameters. In these forms, `;x`, a NUL and blanks are part of a
   * segment's text. These forms can select a rule only if no form in `variants` selects it.
   */
  readonly unstrippedVariants: readonly string[];
}

/** All decoders read a decoded path without these characters in the same way. */
const LENIENT_DIFFERS = /[^ -~]|%/;

/**
 * Reads a path as the router of an app does: it splits the path, and then decodes each segment. It resolves no dots.
 * Strips and folds the segments as in the variants.
 */
export function readAsRouter(path: string, caseSensitive: boolean): string {
  return joinStripped(
    path.split("/").map((segment) => foldText(decodeAll(segment), caseSensitive)),
  );
}

/** Reads a path that may not be canonical. */
class PathReader {
  readonly #pathname: string;
  readonly #caseSensitive: boolean;
  /** Maps texts to their folded forms, because several variants contain the same segments. */
  readonly #folded = new Map<string, string>();
  /** The path after one level of decoding. */
  readonly #once: string;
  /** The path after all levels of decoding. */
  readonly #decoded: string;
  /** The decoded path after folding. */
  readonly #strict: string;
  /** The path as lenient decoders decode it, folded and cut at `?` or `#`. */
  readonly #lenient: string;
  /** Whether folding changes separators. The variants then include origins that split before they fold. */
  readonly #foldsSeparators: boolean;
  /** The segments for origins that split before they decode; undefined if this makes no difference. */
  readonly #splitFirst: readonly string[] | undefined;

  constructor(pathname: string, caseSensitive: boolean) {
    this.#pathname = pathname;
    this.#caseSensitive = caseSensitive;
    this.#once = decodeLevel(pathname);
    this.#decoded = decodeAll(this.#once);
    this.#strict = this.#fold(this.#decoded);
    const lenient = LENIENT_DIFFERS.test(this.#decoded)
      ? foldNormalized(decodeLeniently(this.#once), caseSensitive)
      : this.#strict;
    this.#lenient = lenient.replace(/[?#].*$/s, "");
    this.#foldsSeparators = separatorsOf(this.#decoded) !== separatorsOf(this.#strict);
    if (countSlashes(this.#strict) !== countSlashes(pathname) || /[\0?#]/.test(this.#strict)) {
      this.#splitFirst = pathname.split("/").map((segment) => this.#fold(decodeAll(segment)));
    }
  }

  read(): CanonicalPath {
    const path = canonicalVariant(this.#lenient);
    const variants = this.#variantsWith(path);
    const isUnambiguous = variants.size === 1 && this.#isWrittenPlainly(path);
    const unstripped = [...this.#unstrippedVariants()].filter((each) => !variants.has(each));
    return { path, isUnambiguous, variants: [...variants], unstrippedVariants: unstripped };
  }

  readonly #fold = (text: string): string => {
    const cached = this.#folded.get(text);
    if (cached !== undefined) return cached;
    const result = foldText(text, this.#caseSensitive);
    this.#folded.set(text, result);
    return result;
  };

  #variantsWith(path: string): Set<string> {
    const variants = new Set([path]);
    const add = (text: string, fold: (text: string) => string) => {
      for (const variant of strippedVariants(text, fold)) variants.add(variant);
    };
    for (const text of new Set([this.#lenient, this.#strict])) {
      add(text, keepText);
      const rest = afterAuthority(text);
      if (rest !== undefined) add(rest, keepText);
    }
    if (this.#foldsSeparators) add(this.#decoded, this.#fold);
    for (const text of this.#lessDecoded()) {
      for (const variant of strippedVariants(text, this.#fold)) {
        // No route matches a variant that still has escapes.
        if (!variant.includes("%")) variants.add(variant);
      }
    }
    if (this.#splitFirst) variants.add(joinStripped(this.#splitFirst));
    const validOnly = removeInvalidUtf8(this.#lenient);
    if (validOnly !== this.#lenient) variants.add(canonicalVariant(validOnly));
    return variants;
  }

  /** Returns the texts of origins that decode only once, and of origins that remove parameters before they decode. */
  #lessDecoded(): string[] {
    const texts = this.#pathname.includes("%25") ? [decodeEscapes(this.#pathname)] : [];
    if (this.#pathname.includes(";")) {
      texts.push(decodeEscapes(this.#pathname.replace(/;[^/]*/g, "")));
    }
    return texts.filter((text) => text !== this.#decoded);
  }

  #unstrippedVariants(): Set<string> {
    const variants = new Set<string>();
    // Without these characters, an origin that does not strip has the same variants.
    if (!/[;\0\s]/.test(this.#strict)) return variants;
    const add = (text: string, fold: (text: string) => string) => {
      for (const variant of unstrippedVariants(text, fold)) variants.add(variant);
    };
    const texts = new Set([this.#strict, this.#lenient, afterAuthority(this.#strict)]);
    if (this.#once !== this.#decoded) texts.add(this.#fold(this.#once));
    for (const text of texts) if (text !== undefined) add(text, keepText);
    if (this.#foldsSeparators) add(this.#decoded, this.#fold);
    if (this.#splitFirst) variants.add(join(this.#splitFirst.map(escapeSlashes)));
    return variants;
  }

  /** Whether one level of decoding, a change of case and the removal of a last slash make the path canonical. */
  #isWrittenPlainly(path: string): boolean {
    return (
      !this.#pathname.includes("%25") &&
      countSlashes(this.#pathname) === countSlashes(this.#once) &&
      // Folding turns `ı` into an ASCII letter, but few origins read `ı` as that letter.
      isAscii(path) === isAscii(this.#once) &&
      removeTrailingSlash(this.#caseSensitive ? this.#once : foldCase(this.#once)) === path
    );
  }
}

/** Keeps only the characters at which an origin splits, resolves or cuts a path. */
function separatorsOf(text: string): string {
  return text.replace(/[^/\\.;\0\s%]+/g, "");
}

/**
 * Returns the path of a network-path reference, such as `/login` for `//host/login`. An origin that resolves the
 * target of the request as a URL reads both `//host/login` and `///host/login` as `/login`.
 *
 * @returns undefined if the text does not begin with two slashes
 */
function afterAuthority(text: string): string | undefined {
  return /^[/\\]{2,}[^/\\]*(.*)$/s.exec(text)?.[1];
}

function keepText(text: string): string {
  return text;
}

function countSlashes(text: string): number {
  return text.split(/[/\\]/).length - 1;
}

/** Matches paths that may not be canonical, apart from case and a trailing slash. */
const NEEDS_WORK = /[%;\\]|[^!-~]|\/[./]/;

/**
 * The maximum numbers of characters and segments in the path of a request, if the path matches `NEEDS_WORK`. Such a
 * path has up to 44 variants, and up to 31 variants for origins that do not know path parameters. The time for each
 * variant grows with the path's length. So without maximums, one request could delay the other requests of its
 * isolate. The maximums allow 450 Chinese characters (nine characters each when escaped), and any key of S3 or R2
 * (1,024 bytes).
 */
export const MAX_CHARACTERS = 4096;
export const MAX_SEGMENTS = 128;

/** Matches the short spellings of segment separators. `MAX_CHARACTERS` limits the number of longer spellings. */
const SEPARATORS = /[/\\]|%(?:25)*(?:2f|5c|u|c0|ef%bc)/gi;

/**
 * Brings a URL's path into the canonical form. Weir matches rules against this form and uses it in keys. Escapes are
 * decoded, including nested escapes. `\` becomes `/`. A NUL ends the path. `;parameters` and white space at the end
 * of a segment are removed. `.`, `..` and empty segments are resolved, and a trailing slash is removed. Compatible
 * characters become equal, and upper case becomes lower case unless `caseSensitive` is true. Bytes that are not UTF-8
 * stay escaped.
 *
 * If origins read a path in different ways, the canonical form is the reading that makes the most paths equal, so
 * that these paths share a counter. The variants contain all readings. The time grows in proportion to the length of
 * the path.
 *
 * @param pathname the path as the WHATWG URL parser returns it
 */
export function canonicalPath(pathname: string, caseSensitive: boolean): CanonicalPath {
  if (NEEDS_WORK.test(pathname)) return new PathReader(pathname, caseSensitive).read();
  const path = removeTrailingSlash(caseSensitive ? pathname : pathname.toLowerCase());
  return { path, isUnambiguous: true, variants: [path], unstrippedVariants: [] };
}

/** Whether a path that matches `NEEDS_WORK` exceeds `MAX_CHARACTERS` or `MAX_SEGMENTS`. */
export function isTooLong(path: string): boolean {
  if (path.length <= MAX_SEGMENTS || !NEEDS_WORK.test(path)) return false;
  return path.length > MAX_CHARACTERS || (path.match(SEPARATORS)?.length ?? 0) > MAX_SEGMENTS;
}
