import fc from "fast-check";
import { canonicalPath } from "../../src/request/canonical-path.ts";
import { property } from "../property.ts";

const LETTERS = [..."abiklsz019-_~é"];

/** Ways to write one letter that some server takes for it. */
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

/** Ways to divide segments, and to add some that come to nothing. */
const SLASHES = [
  ...["/", "//", "/./", "/x/../", "\\", "/;x=1/", "/%2e/", "/y/%2E%2e/"],
  ...["%2f", "%2F", "%5c", "%252f", "/%252e/", "/x%2f..%2f", "%2fx%2f%2e%2e%2f", "%u002f"],
  ...["%c0%af", "%EF%BC%8F", "/%EF%BC%8E/", ";a=b/", "%3Ba/", "%20/"],
];

const ENDS = ["", "/", "//", "/.", ";x=1", "%3bx", "%00", "%00.jpg", "%20", "%2f", "?q=/", "#f"];

const word = fc.array(
  fc.record({ letter: fc.constantFrom(...LETTERS), spell: fc.constantFrom(...SPELLINGS) }),
  { minLength: 1, maxLength: 4 },
);

const spelt = fc
  .record({
    words: fc.array(fc.record({ slash: fc.constantFrom(...SLASHES), word }), {
      minLength: 1,
      maxLength: 3,
    }),
    end: fc.constantFrom(...ENDS),
  })
  .map(({ words, end }) => ({
    plainly: words.map(({ word }) => `/${word.map(({ letter }) => letter).join("")}`).join(""),
    oddly: `/${words
      .map(({ slash, word }) => slash + word.map(({ letter, spell }) => spell(letter)).join(""))
      .join("")}${end}`,
  }));

/** One path, written plainly and in a way that some server takes for the same. */
export const spellingsTarget = property(
  "spellings",
  "a path in any spelling that a server takes for it is counted as that path",
  spelt,
  ({ plainly, oddly }) => {
    const { pathname } = new URL(`http://host${oddly}`);
    const { path } = canonicalPath(pathname, false);
    if (path !== plainly) throw new Error(`${oddly} is ${path}, and not ${plainly}`);
  },
);

function hex(code: number, digits: number): string {
  return code.toString(16).padStart(digits, "0");
}

function escaped(letter: string): string {
  return [...new TextEncoder().encode(letter)].map((byte) => `%${hex(byte, 2)}`).join("");
}

/** ASCII in two bytes of UTF-8, where one is enough. */
function overlong(letter: string): string {
  const code = letter.charCodeAt(0);
  if (code > 0x7f) return letter;
  return `%${hex(0xc0 | (code >> 6), 2)}%${hex(0x80 | (code & 0x3f), 2)}`;
}

/** ASCII in the width of Chinese characters, which compatible forms come from. */
function fullWidth(letter: string): string {
  const code = letter.charCodeAt(0);
  return code > 0x20 && code < 0x7f ? String.fromCharCode(code + 0xfee0) : letter;
}
