import { decodeAll, decodeLeniently, decodeLevel } from "./path-decoding.ts";
import {
  canonicalVariant,
  hasStrippableText,
  joinStripped,
  joinUnstripped,
  removeTrailingSlash,
  strippedVariants,
  unstrippedVariants,
} from "./path-variants.ts";
import {
  decodeEscapes,
  foldCase,
  foldNormalized,
  foldText,
  isAscii,
  removeInvalidUtf8,
} from "./text-folding.ts";

/** A path in canonical form, and the other forms in which origins may read it. */
export interface CanonicalPath {
  /** The canonical form. Keys and counters use this form. */
  readonly path: string;
  /**
   * Whether every origin reads the path in this form. Paths such as `/a%2f..%2fb`, `//a`, `/a;b`
   * and `/%2561` are ambiguous, because servers split, decode and resolve them in different orders.
   */
  readonly isUnambiguous: boolean;
  /**
   * All forms in which an origin may read the path. The canonical form is the first. A rule matches
   * the request if it matches any of these forms.
   */
  readonly variants: readonly string[];
  /**
   * Further forms. Origins that do not know path parameters may read the path in these forms, in
   * which `;x`, a NUL and blanks are part of a segment's text. These forms can select a rule only
   * if no form in `variants` selects it.
   */
  readonly unstrippedVariants: readonly string[];
}

/**
 * Matches characters that lenient decoders may read differently. A decoded path without these
 * characters is the same for all decoders.
 */
const LENIENT_DIFFERS = /[^ -~]|%/;

/**
 * Reads a path as the router of an app does: it splits the path, then decodes each segment, and
 * resolves no dots. The segments are stripped and folded like those of the variants.
 */
export function readAsRouter(path: string, caseSensitive: boolean): string {
  return joinStripped(
    path.split("/").map((segment) => foldText(decodeAll(segment), caseSensitive)),
  );
}

/** Computes the canonical form and the variants of a path that may not be canonical yet. */
export class PathReader {
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
  /**
   * Whether folding changes separators. If it does, origins that fold before they split read a
   * different path from origins that split before they fold.
   */
  readonly #foldsSeparators: boolean;
  /**
   * The segments for origins that split before they decode; undefined if this order has no effect.
   */
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
    const unstripped = this.#unstrippedVariants();
    for (const variant of variants) unstripped.delete(variant);
    return {
      path,
      isUnambiguous,
      variants: [...variants],
      unstrippedVariants: [...unstripped],
    };
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
        // A variant that still has escapes is left out, because no route matches it.
        if (!variant.includes("%")) variants.add(variant);
      }
    }
    if (this.#splitFirst) variants.add(joinStripped(this.#splitFirst));
    const validOnly = removeInvalidUtf8(this.#lenient);
    if (validOnly !== this.#lenient) variants.add(canonicalVariant(validOnly));
    return variants;
  }

  /**
   * Returns the paths that two kinds of origins read: origins that decode only once, and origins
   * that remove parameters before they decode.
   */
  #lessDecoded(): string[] {
    const texts = this.#pathname.includes("%25") ? [decodeEscapes(this.#pathname)] : [];
    if (this.#pathname.includes(";")) {
      texts.push(decodeEscapes(this.#pathname.replace(/;[^/]*/g, "")));
    }
    return texts.filter((text) => text !== this.#decoded);
  }

  #unstrippedVariants(): Set<string> {
    const variants = new Set<string>();
    if (!hasStrippableText(this.#strict)) return variants;
    const add = (text: string, fold: (text: string) => string) => {
      for (const variant of unstrippedVariants(text, fold)) variants.add(variant);
    };
    const texts = new Set([this.#strict, this.#lenient, afterAuthority(this.#strict)]);
    if (this.#once !== this.#decoded) texts.add(this.#fold(this.#once));
    for (const text of texts) if (text !== undefined) add(text, keepText);
    if (this.#foldsSeparators) add(this.#decoded, this.#fold);
    if (this.#splitFirst) variants.add(joinUnstripped(this.#splitFirst));
    return variants;
  }

  /**
   * Whether the path differs from its canonical form only in one level of escapes, case and a
   * trailing slash.
   */
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

/** Removes all characters except those at which an origin splits, resolves or cuts a path. */
function separatorsOf(text: string): string {
  return text.replace(/[^/\\.;\0\s%]+/g, "");
}

/**
 * Returns the path of a network-path reference, such as `/login` for `//host/login`. An origin that
 * resolves the request's target as a URL reads both `//host/login` and `///host/login` as `/login`.
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
  let slashes = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x2f || code === 0x5c) slashes++;
  }
  return slashes;
}
