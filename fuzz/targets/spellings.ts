import fc from "fast-check";
import { canonicalPath } from "../../src/request/path.ts";
import { createTarget } from "../property.ts";

const LETTERS = [..."abiklsz019-_~é"];

/** Each function spells a letter in a way that some server reads as this letter. */
const SPELLINGS: readonly ((letter: string) => string)[] = [
  (letter) => letter,
  (letter) => letter.toUpperCase(),
  escaped,
  (letter) => escaped(letter).toLowerCase(),
  (letter) => escaped(letter).replaceAll("%", "%25"),
  (letter) => escaped(letter).replaceAll("%", "%2525"),
  (letter) => `%u${hex(letter.charCodeAt(0), 4)}`,
  (letter) => `%25u${hex(letter.charCodeAt(0), 4)}`,
  overlong,
  fullWidth,
  (letter) => escaped(fullWidth(letter)),
  (letter) => `%E2%80%8B${letter}`,
  (letter) => `${letter}%0a`,
];

/** Separators of segments, and segments that origins remove. */
const SEPARATORS = [
  ...["/", "//", "/./", "/x/../", "\\", "/;x=1/", "/%2e/", "/y/%2E%2e/"],
  ...["%2f", "%2F", "%5c", "%252f", "/%252e/", "/x%2f..%2f", "%2fx%2f%2e%2e%2f", "%u002f"],
  ...["%c0%af", "%EF%BC%8F", "/%EF%BC%8E/", ";a=b/", "%3Ba/", "%20/"],
];

const ENDS = ["", "/", "//", "/.", ";x=1", "%3bx", "%00", "%00.jpg", "%20", "%2f", "?q=/", "#f"];

const word = fc.array(
  fc.record({ letter: fc.constantFrom(...LETTERS), spell: fc.constantFrom(...SPELLINGS) }),
  { minLength: 1, maxLength: 4 },
);

const pathInTwoSpellings = fc
  .record({
    words: fc.array(fc.record({ separator: fc.constantFrom(...SEPARATORS), word }), {
      minLength: 1,
      maxLength: 3,
    }),
    end: fc.constantFrom(...ENDS),
  })
  .map(({ words, end }) => ({
    plain: words.map(({ word }) => `/${word.map(({ letter }) => letter).join("")}`).join(""),
    disguised: `/${words
      .map(
        ({ separator, word }) =>
          separator + word.map(({ letter, spell }) => spell(letter)).join(""),
      )
      .join("")}${end}`,
  }));

/**
 * The target for two spellings of a path. The first spelling is plain. Some server reads the second
 * spelling as the same path.
 */
export const spellingsTarget = createTarget(
  "spellings",
  "a path in any spelling that some server accepts is counted as that path",
  pathInTwoSpellings,
  ({ plain, disguised }) => {
    const { pathname } = new URL(`http://host${disguised}`);
    const { path } = canonicalPath(pathname, false);
    if (path !== plain) throw new Error(`${disguised} is counted as ${path}, and not as ${plain}`);
  },
);

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0");
}

function escaped(letter: string): string {
  return [...new TextEncoder().encode(letter)].map((byte) => `%${hex(byte, 2)}`).join("");
}

/** Spells an ASCII letter in two bytes of UTF-8, although one byte is enough. */
function overlong(letter: string): string {
  const code = letter.charCodeAt(0);
  if (code > 0x7f) return letter;
  return `%${hex(0xc0 | (code >> 6), 2)}%${hex(0x80 | (code & 0x3f), 2)}`;
}

/** Returns the full-width form of an ASCII letter. It is as wide as a Chinese character. */
function fullWidth(letter: string): string {
  const code = letter.charCodeAt(0);
  return code > 0x20 && code < 0x7f ? String.fromCharCode(code + 0xfee0) : letter;
}
