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
 * Whether lenient servers ignore the rest of a sent name, after the expected name. They ignore
 * blanks, brackets (empty or around digits), and everything after a NUL.
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

/** Returns the folded code units of a name, without brackets around the name or after it. */
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
    // A byte above ASCII belongs to a character of several bytes. Among these characters, only
    // spaces matter in this comparison, so each such byte becomes a space.
    return byte < 0x80 ? byte : 0x20;
  }
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
function foldCode(code: number): number {
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
