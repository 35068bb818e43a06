// These functions remove differences between texts that some origins ignore.

/**
 * Replaces each character by one representative of all characters that a server may treat as equal. Compatible forms
 * (NFKC: `ｌ`, `ﬁ`, `K`) become plain characters. Upper case becomes lower case, letter by letter. Letters with a case
 * mapping in only one direction (`ı`, `İ`, `ς`) are folded too. `ß` stays, because no server treats `ß` and `ss` as
 * equal in routes.
 */
export function foldText(text: string, caseSensitive: boolean): string {
  if (isAscii(text)) return caseSensitive ? text : text.toLowerCase();
  return foldNormalized(text.replace(LONG_MARKS, "\u0301").normalize("NFKC"), caseSensitive);
}

/** Does the last step of {@link foldText}, for a text in NFKC. */
export function foldNormalized(normalized: string, caseSensitive: boolean): string {
  if (caseSensitive) return normalized;
  const lower = foldCase(normalized);
  // After the change of case, a letter may combine with the accent after it, so NFKC is applied again.
  return lower === normalized ? normalized : lower.normalize("NFKC");
}

/** Folds only case, in the same way as {@link foldText}. */
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
 * Decodes escapes that only lenient decoders accept: `%u006c`, which was never a standard, and
 * overlong UTF-8 (`%C1%AC`), which uses more bytes than an ASCII character needs. Also removes
 * control characters and characters without a width, because some parsers drop them. NUL stays,
 * because other parsers stop at it.
 */
export function decodeNonStandard(text: string): string {
  return decodeOverlong(decodeUnicodeEscapes(text)).replace(INVISIBLE, "");
}

/** Decodes ASCII characters that are encoded in more bytes than necessary. */
export function decodeOverlong(text: string): string {
  return text.replace(
    /%(?:C|E0%8|F0%80%8)([01])%([89AB][0-9A-F])/gi,
    (_, high: string, low: string) =>
      String.fromCharCode((Number(high) << 6) | (Number.parseInt(low, 16) & 0x3f)),
  );
}

/** Decodes escapes such as `%u006c`. */
export function decodeUnicodeEscapes(text: string): string {
  return text.replace(/%u([0-9a-f]{4})/gi, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  );
}

/** Replaces escaped bytes that are not UTF-8, and decodes the other escapes. */
export function removeInvalidUtf8(text: string, replacement = ""): string {
  if (!text.includes("%")) return text;
  return text
    .replace(UTF8_OR_BYTE, (_, escapes?: string) =>
      escapes ? decodeURIComponent(escapes) : replacement,
    )
    .replaceAll("\ufffd", replacement);
}

export function isAscii(text: string): boolean {
  return !/\P{ASCII}/u.test(text);
}

/**
 * Decodes one level of percent escapes, like a server that decodes once. In bytes that are not UTF-8, decodes only
 * the ASCII characters.
 */
export function decodeEscapes(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    // The replacement function never throws. So a text causes at most one exception, and thousands of exceptions
    // would take long.
    return text.replace(/(?:%[0-9a-f]{2})+/gi, decodeEscapeRun);
  }
}

/** Whether a text has escapes of valid UTF-8. */
export function hasDecodableEscapes(text: string): boolean {
  return UTF8_ANYWHERE.test(text);
}

/**
 * Decodes consecutive escapes. If they are not UTF-8, decodes only ASCII, and writes the other escapes in upper case.
 *
 * @param escapes a text that consists of percent escapes
 */
export function decodeEscapeRun(escapes: string): string {
  if (UTF8_RUN.test(escapes)) return decodeURIComponent(escapes);
  const upper = escapes.toUpperCase();
  return /%[0-7]/.test(upper) ? upper.replace(/%[0-7][0-9A-F]/g, decodeURIComponent) : upper;
}

/**
 * Removes blanks from both ends. A blank is any character that some server strips from a value:
 * Unicode white space, a control character or a character without a width. A regular expression such
 * as `/\s+$/` would take quadratic time for blanks inside the text.
 *
 * @param alsoQuotes whether to remove double quotes too, even if they are only at one end
 */
export function trimBlanks(text: string, alsoQuotes = false): string {
  let start = 0;
  let end = text.length;
  const isRemovable = (index: number) => {
    const code = text.charCodeAt(index);
    return isBlank(code) || (alsoQuotes && code === QUOTE);
  };
  while (start < end && isRemovable(start)) start++;
  while (end > start && isRemovable(end - 1)) end--;
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

/** Whether a UTF-16 code unit is a blank as {@link trimBlanks} defines it. */
export function isBlank(code: number): boolean {
  if (code <= 0xa0) return code <= 0x20 || code >= 0x7f;
  // U+00AD is the soft hyphen. There is no blank between U+00AD and U+034F.
  if (code === 0xad) return true;
  return code >= 0x34f && OTHER_BLANKS.test(String.fromCharCode(code));
}

/** Removes every occurrence of a character from the end of a text, in linear time. */
export function removeTrailing(character: string, text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return end === text.length ? text : text.slice(0, end);
}

const QUOTE = 0x22;
/** Matches white space above ASCII, the replacement character, and characters without a width. */
const OTHER_BLANKS = /[\s\ufffd]|\p{Default_Ignorable_Code_Point}/u;
/**
 * Matches nine or more combining marks. No language puts that many marks on one letter. They become a single mark,
 * because NFKC sorts marks in quadratic time: the 30 marks of Unicode's stream-safe text format would take too long
 * in up to 44 variants of a path. One mark stays, because a segment that consists only of marks must not become
 * empty. The pattern includes the half-width sound marks, because NFKC turns them into combining marks.
 */
const LONG_MARKS = /[\p{M}\uff9e\uff9f]{9,}/gu;
/** A pattern for the escapes that decodeURIComponent accepts as UTF-8 (RFC 3629, section 4). */
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
/**
 * Matches the letters in NFKC that change when they are upper-cased and then lower-cased, except the letters that
 * {@link foldCase} replaces one by one.
 */
const ONE_WAY = /[\u1c80-\u1c88]/g;
/** Does not match NUL: see {@link decodeNonStandard}. */
const INVISIBLE = /(?!\0)\p{Cc}|\p{Default_Ignorable_Code_Point}/gu;
