import { isBlank } from "./text-folding.ts";

/**
 * Prepares a comparison of names as the most tolerant of servers make it: in any case, with escapes
 * undone, cut at a NUL, without blanks at the ends; `[name]`, `name[]` and `name[0]` are `name` (qs,
 * PHP, Rails), `]name` and `[]name` too (Rack 2), and `.`, blanks, `+` and other brackets are `_` (PHP).
 *
 * The comparison walks over the name, and makes no text of it: a request can bring thousands.
 *
 * @param name as a rule writes it
 */
export function createNameTest(name: string): (given: string) => boolean {
  const wanted = loose(name);
  return function isNamed(given) {
    const reader = new NameReader(given);
    let code = reader.next();
    while (code > 0 && (isBlank(code) || code === OPEN || code === CLOSE)) code = reader.next();
    for (const letter of wanted) {
      if (fold(code) !== letter) return false;
      code = reader.next();
    }
    return isSuffix(code, reader);
  };
}

/** What may follow a name: nothing, a NUL and anything, or blanks and brackets with digits in them. */
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

/** The code units of a name, folded, without brackets around or behind it. */
function loose(name: string): number[] {
  const bare = name.replace(/(\[\d*\])+$/, "").replace(/^\[(.+)\]$/, "$1");
  return Array.from({ length: bare.length }, (_, at) => fold(bare.charCodeAt(at)));
}

/** Reads a name one UTF-16 code unit after the other, with escaped bytes and plus signs decoded. */
class NameReader {
  readonly #name: string;
  #at = 0;

  constructor(name: string) {
    this.#name = name;
  }

  next(): number {
    if (this.#at >= this.#name.length) return END;
    const code = this.#name.charCodeAt(this.#at++);
    if (code === 0x2b) return 0x20;
    if (code !== 0x25) return code;
    const byte =
      hex(this.#name.charCodeAt(this.#at)) * 16 + hex(this.#name.charCodeAt(this.#at + 1));
    if (!(byte >= 0)) return code;
    this.#at += 2;
    // One byte of a character above ASCII: a blank, because the characters to look for are spaces.
    return byte < 0x80 ? byte : 0x20;
  }
}

/** @returns NaN for what is no hexadecimal digit */
function hex(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN;
}

/** A code unit in lower case, of ASCII's width, and as an underscore where PHP has one for it. */
function fold(code: number): number {
  const narrow = code >= 0xff01 && code <= 0xff5e ? code - 0xfee0 : code;
  if (narrow >= 0x41 && narrow <= 0x5a) return narrow + 0x20;
  // NUL ends a name, and what is below it is the name's end.
  if (narrow <= 0) return narrow;
  if (isBlank(narrow) || UNDERSCORES.has(narrow)) return UNDERSCORE;
  if (narrow < 0x80) return narrow;
  return String.fromCharCode(narrow).toUpperCase().toLowerCase().charCodeAt(0);
}

/** Dot and brackets. */
const UNDERSCORES: ReadonlySet<number> = new Set([0x2e, OPEN, CLOSE]);
