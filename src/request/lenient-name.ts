import { isBlank } from "./text-folding.ts";

/**
 * Prepares a comparison of names as the most lenient servers make it. They ignore case, decode escapes,
 * cut the name at a NUL and remove blanks from its ends. They read `[name]`, `name[]` and `name[0]` as
 * `name` (qs, PHP, Rails), and `]name` and `[]name` too (Rack 2). They read `.`, blanks, `+` and other
 * brackets as `_` (PHP).
 *
 * The comparison reads the name one code unit at a time and allocates no text, because one request can
 * carry thousands of names.
 *
 * @param name as a rule writes it
 */
export function createNameTest(name: string): (sentName: string) => boolean {
  const expected = foldName(name);
  return function isNamed(sentName) {
    const reader = new NameReader(sentName);
    let code = reader.next();
    while (code > 0 && (isBlank(code) || code === OPEN || code === CLOSE)) code = reader.next();
    for (const letter of expected) {
      if (foldCode(code) !== letter) return false;
      code = reader.next();
    }
    return isSuffix(code, reader);
  };
}

/**
 * Whether the rest may follow a name: nothing, or a NUL and any text, or blanks and brackets with
 * digits in them.
 */
function isSuffix(first: number, reader: NameReader): boolean {
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
const OPEN = 0x5b;
const CLOSE = 0x5d;
const UNDERSCORE = 0x5f;

/** The folded code units of a name, without the brackets around it or after it. */
function foldName(name: string): number[] {
  const bare = name.replace(/(\[\d*\])+$/, "").replace(/^\[(.+)\]$/, "$1");
  return Array.from({ length: bare.length }, (_, index) => foldCode(bare.charCodeAt(index)));
}

/** Reads a name one UTF-16 code unit at a time, and decodes escaped bytes and plus signs. */
class NameReader {
  readonly #name: string;
  #index = 0;

  constructor(name: string) {
    this.#name = name;
  }

  /** @returns the next code unit, or `END` */
  next(): number {
    if (this.#index >= this.#name.length) return END;
    const code = this.#name.charCodeAt(this.#index++);
    if (code === 0x2b) return 0x20;
    if (code !== 0x25) return code;
    const byte =
      hexDigit(this.#name.charCodeAt(this.#index)) * 16 +
      hexDigit(this.#name.charCodeAt(this.#index + 1));
    if (!(byte >= 0)) return code;
    this.#index += 2;
    // A byte above ASCII belongs to a longer character. The only such characters in question are spaces.
    return byte < 0x80 ? byte : 0x20;
  }
}

/** @returns the value of a hexadecimal digit; NaN for any other code unit */
function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN;
}

/** A code unit in lower case and in ASCII's width; an underscore where PHP reads one. */
function foldCode(code: number): number {
  const narrow = code >= 0xff01 && code <= 0xff5e ? code - 0xfee0 : code;
  if (narrow >= 0x41 && narrow <= 0x5a) return narrow + 0x20;
  // NUL and END both end a name.
  if (narrow <= 0) return narrow;
  if (isBlank(narrow) || BECOME_UNDERSCORES.has(narrow)) return UNDERSCORE;
  if (narrow < 0x80) return narrow;
  return String.fromCharCode(narrow).toUpperCase().toLowerCase().charCodeAt(0);
}

/** The dot and the brackets. */
const BECOME_UNDERSCORES: ReadonlySet<number> = new Set([0x2e, OPEN, CLOSE]);
