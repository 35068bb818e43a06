import { isBlank } from "./text-folding.ts";

/**
 * Returns a function that tests whether lenient servers would read a sent name as the given name.
 * Such servers ignore case, decode escapes, cut the name at a NUL and remove blanks from its ends.
 * PHP, Rails and qs read `[name]`, `name[]` and `name[0]` as `name`. Rack 2 reads `]name` and
 * `[]name` as `name` too. PHP reads `.`, blanks, `+` and other brackets as `_`.
 *
 * The function reads the sent name one code unit at a time and creates no new text, because one
 * request can contain thousands of names.
 *
 * @param name the name in a rule's key
 */
export function createNameTest(name: string): (sentName: string) => boolean {
  const expected = foldName(name);
  return function isNamed(sentName) {
    // The name in a rule's key may contain what looks like an escape.
    if (sentName === name) return true;
    const reader = new NameReader(sentName);
    let code = skipStart(reader);
    for (const letter of expected) {
      if (foldCode(code) !== letter) return false;
      code = reader.next();
    }
    return isSuffix(code, reader);
  };
}

/** Skips blanks and brackets at the start of a name, and returns the first code unit after them. */
export function skipStart(reader: NameReader): number {
  let code = reader.next();
  while (code > 0 && (isBlank(code) || code === OPEN || code === CLOSE)) code = reader.next();
  return code;
}

/**
 * Whether lenient servers ignore the rest of a sent name, after the expected name. They ignore
 * blanks, brackets (empty or around digits), and everything after a NUL.
 */
export function isSuffix(first: number, reader: NameReader): boolean {
  let inBrackets = false;
  for (let code = first; code > 0; code = reader.next()) {
    const isDigit = code >= 0x30 && code <= 0x39;
    if (code === OPEN) inBrackets = true;
    else if (code === CLOSE) inBrackets = false;
    else if (!isBlank(code) && !(inBrackets && isDigit)) return false;
  }
  return true;
}

const END = -1;
export const OPEN = 0x5b;
const CLOSE = 0x5d;
const UNDERSCORE = 0x5f;

/** Returns the folded code units of a name, without brackets around the name or after it. */
export function foldName(name: string): number[] {
  const bare = name.replace(/(\[\d*\])+$/, "").replace(/^\[(.+)\]$/, "$1");
  return Array.from({ length: bare.length }, (_, index) => foldCode(bare.charCodeAt(index)));
}

/**
 * Reads a name one UTF-16 code unit at a time. It decodes plus signs and escapes, also `%u0071` and
 * ASCII characters that are encoded in more bytes than necessary.
 */
export class NameReader {
  readonly #name: string;
  #index: number;

  constructor(name: string, index = 0) {
    this.#name = name;
    this.#index = index;
  }

  /** Returns a second reader that continues at the same position. */
  copy(): NameReader {
    return new NameReader(this.#name, this.#index);
  }

  /** @returns the next code unit, or `END` */
  next(): number {
    if (this.#index >= this.#name.length) return END;
    const code = this.#name.charCodeAt(this.#index++);
    if (code === 0x2b) return 0x20;
    if (code !== 0x25) return code;
    return this.#escapeOfNoStandard() ?? this.#escape();
  }

  /** Reads `u0071` after a percent sign. */
  #escapeOfNoStandard(): number | undefined {
    if ((this.#name.charCodeAt(this.#index) | 0x20) !== 0x75) return undefined;
    const code = this.#byteAt(this.#index + 1) * 256 + this.#byteAt(this.#index + 3);
    if (Number.isNaN(code)) return undefined;
    this.#index += 5;
    return code;
  }

  /** Reads two hexadecimal digits after a percent sign, and all escapes of the same character. */
  #escape(): number {
    const first = this.#byteAt(this.#index);
    if (Number.isNaN(first)) return 0x25;
    this.#index += 2;
    if (first < 0x80) return first;
    const length = lengthAfter(first);
    let code = first & (0x3f >> length);
    let index = this.#index;
    for (let count = 0; count < length; count++, index += 3) {
      const byte = this.#name.charCodeAt(index) === 0x25 ? this.#byteAt(index + 1) : Number.NaN;
      // A byte that is not UTF-8 becomes a space, because some servers remove it.
      if (!(byte >= 0x80 && byte < 0xc0)) return 0x20;
      code = (code << 6) | (byte & 0x3f);
    }
    this.#index = index;
    // This comparison need not distinguish characters above U+FFFF, so each counts as a space.
    return length === 0 || code > 0xffff ? 0x20 : code;
  }

  /** @returns NaN if there are no two hexadecimal digits */
  #byteAt(index: number): number {
    return hexDigit(this.#name.charCodeAt(index)) * 16 + hexDigit(this.#name.charCodeAt(index + 1));
  }
}

/** Returns how many bytes of UTF-8 follow this first byte of a character. */
function lengthAfter(first: number): number {
  if (first < 0xc0 || first >= 0xf8) return 0;
  if (first < 0xe0) return 1;
  return first < 0xf0 ? 2 : 3;
}

/** @returns the value of a hexadecimal digit; NaN for any other code unit */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN;
}

/**
 * Folds a code unit. Full-width characters become ASCII, and upper case becomes lower case.
 * Characters that PHP replaces by an underscore become an underscore.
 */
export function foldCode(code: number): number {
  const narrow = code >= 0xff01 && code <= 0xff5e ? code - 0xfee0 : code;
  if (narrow >= 0x41 && narrow <= 0x5a) return narrow + 0x20;
  // NUL and END both end a name.
  if (narrow <= 0) return narrow;
  if (isBlank(narrow) || BECOME_UNDERSCORES.has(narrow)) return UNDERSCORE;
  if (narrow < 0x80) return narrow;
  return String.fromCharCode(narrow).toUpperCase().toLowerCase().charCodeAt(0);
}

/** The dot and the brackets, which PHP replaces by an underscore. */
const BECOME_UNDERSCORES: ReadonlySet<number> = new Set([0x2e, OPEN, CLOSE]);
