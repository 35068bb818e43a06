// Ways to write one text in another: each takes off what some origins do not see.

/**
 * One letter for all that a server may take for it: compatible forms (NFKC: `ｌ`, `ﬁ`, `K`) are the
 * plain ones, and upper case is lower, letter by letter, also where only one of the two directions
 * leads to it (`ı`, `İ`, `ς`). `ß` stays, since it is `ss` in words, but in no server's routes.
 */
export function foldText(text: string, caseSensitive: boolean): string {
  if (isAscii(text)) return caseSensitive ? text : text.toLowerCase();
  return folded(text.replace(LONG_MARKS, "\u0301").normalize("NFKC"), caseSensitive);
}

/** The rest of {@link foldText} for a text whose compatible forms are the plain ones already. */
export function folded(plain: string, caseSensitive: boolean): string {
  if (caseSensitive) return plain;
  const lower = foldCase(plain);
  // A letter that case has changed may go together with an accent behind it.
  return lower === plain ? plain : lower.normalize("NFKC");
}

/** The part of {@link foldText} that is about case alone. */
export function foldCase(text: string): string {
  const lower = text.toLowerCase();
  if (isAscii(lower)) return lower;
  return lower
    .replaceAll("i\u0307", "i")
    .replaceAll("ı", "i")
    .replaceAll("ς", "σ")
    .replaceAll("\u0345", "ι")
    .replace(ONE_WAY, (letter) => letter.toUpperCase().toLowerCase());
}

/**
 * Undoes what only careless decoders do: `%u006c`, which was never a standard, and ASCII spelt in
 * more bytes of UTF-8 than it needs (`%C1%AC`). Controls and characters without a width go, as some
 * parsers drop them; NUL stays, at which others stop.
 */
export function undoCareless(text: string): string {
  return text
    .replace(/%u([0-9a-f]{4})/gi, (_, code: string) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    )
    .replace(/%(?:C|E0%8|F0%80%8)([01])%([89AB][0-9A-F])/gi, (_, high: string, low: string) =>
      String.fromCharCode((Number(high) << 6) | (Number.parseInt(low, 16) & 0x3f)),
    )
    .replace(UNSEEN, "");
}

/** What remains where bytes that are not UTF-8 are left out. */
export function withoutBrokenBytes(text: string): string {
  if (!text.includes("%")) return text;
  return text
    .replace(UTF8_OR_BYTE, (_, whole?: string) => (whole ? decodeURIComponent(whole) : ""))
    .replaceAll("\ufffd", "");
}

export function isAscii(text: string): boolean {
  return !/\P{ASCII}/u.test(text);
}

/**
 * Undoes one level of percent escapes, as a server does that knows of no other. Where bytes are not
 * UTF-8, the ASCII among them is all that is read.
 */
export function decodeEscapes(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    // A single exception at most: thousands would take long.
    return text.replace(/(?:%[0-9a-f]{2})+/gi, decodeRun);
  }
}

/** Whether a text has escapes that spell characters. */
export function hasEscapes(text: string): boolean {
  return UTF8_ANYWHERE.test(text);
}

/** @param escapes nothing but percent escapes */
export function decodeRun(escapes: string): string {
  if (UTF8_RUN.test(escapes)) return decodeURIComponent(escapes);
  const upper = escapes.toUpperCase();
  return /%[0-7]/.test(upper) ? upper.replace(/%[0-7][0-9A-F]/g, decodeURIComponent) : upper;
}

/**
 * Removes blanks from both ends: what servers of any make strip from a value, which is white space
 * of Unicode, controls, and characters without a width. A loop, because a regular expression such
 * as `/\s+$/` takes quadratic time for blanks inside the text.
 *
 * @param alsoQuotes whether double quotes are removed, too, also one without a counterpart
 */
export function trimBlanks(text: string, alsoQuotes = false): string {
  let start = 0;
  let end = text.length;
  const goes = (at: number) => {
    const code = text.charCodeAt(at);
    return isBlank(code) || (alsoQuotes && code === QUOTE);
  };
  while (start < end && goes(start)) start++;
  while (end > start && goes(end - 1)) end--;
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

/** Whether a UTF-16 code unit is a blank of {@link trimBlanks}. */
export function isBlank(code: number): boolean {
  if (code <= 0xa0) return code <= 0x20 || code >= 0x7f;
  // Soft hyphen, then what begins behind the Latin letters and Greek.
  if (code === 0xad) return true;
  return code >= 0x34f && OTHER_BLANKS.test(String.fromCharCode(code));
}

/** Removes all of one character from the end. A loop, for the same reason. */
export function withoutFinal(character: string, text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return end === text.length ? text : text.slice(0, end);
}

const QUOTE = 0x22;
/** White space above ASCII, the replacement character, and what has no width. */
const OTHER_BLANKS = /[\s\ufffd]|\p{Default_Ignorable_Code_Point}/u;
/**
 * More marks on one letter than any language has. They become a single one, because NFKC sorts them in
 * quadratic time. Unicode's stream-safe text format allows 30, which takes too long in many readings.
 * Without any, a segment of marks alone would be empty. The half-width sound marks become marks.
 */
const LONG_MARKS = /[\p{M}\uff9e\uff9f]{9,}/gu;
/** Escapes of characters that decodeURIComponent takes for UTF-8 (RFC 3629, 4), as a pattern. */
const UTF8 = `(?:${[
  "%[0-7][0-9A-F]",
  "%(?:C[2-9A-F]|D[0-9A-F])<>",
  "%E0%[AB][0-9A-F]<>",
  "%(?:E[1-9ABCEF]<>|ED%[89][0-9A-F])<>",
  "%F0%[9AB][0-9A-F]<><>",
  "%(?:F[1-3]<>|F4%8[0-9A-F])<><>",
]
  .join("|")
  .replaceAll("<>", "%[89AB][0-9A-F]")})+`;
const UTF8_ANYWHERE = new RegExp(UTF8, "i");
const UTF8_RUN = new RegExp(`^${UTF8}$`, "i");
const UTF8_OR_BYTE = new RegExp(`(${UTF8})|%[0-9A-F]{2}`, "gi");
/** The other lower-case letters that are not the lower case of their upper case, after NFKC. */
const ONE_WAY = /[\u1c80-\u1c88]/g;
/** Controls but NUL, and what has no width. */
const UNSEEN = /(?!\0)\p{Cc}|\p{Default_Ignorable_Code_Point}/gu;
