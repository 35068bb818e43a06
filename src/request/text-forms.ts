// Ways to write one text in another: each takes off what some origins do not see.

/**
 * One letter for all that a server may take for it: compatible forms (NFKC: `ｌ`, `ﬁ`, `K`) are the
 * plain ones, and upper case is lower, letter by letter, also where only one of the two directions
 * leads to it (`ı`, `İ`, `ς`). `ß` stays, since it is `ss` in words, but in no server's routes.
 */
export function foldText(text: string, caseSensitive: boolean): string {
  if (isAscii(text)) return caseSensitive ? text : text.toLowerCase();
  const plain = text.normalize("NFKC");
  // A letter that case has changed may go together with an accent behind it.
  return caseSensitive ? plain : foldCase(plain).normalize("NFKC");
}

/** The part of {@link foldText} that is about case alone. */
export function foldCase(text: string): string {
  const lower = text.toLowerCase();
  if (isAscii(lower)) return lower;
  return lower
    .replaceAll("i\u0307", "i")
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
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (escapes) => {
    const bytes = escapes
      .slice(1)
      .split("%")
      .map((byte) => Number.parseInt(byte, 16));
    return UTF8.decode(new Uint8Array(bytes)).replaceAll("\ufffd", "");
  });
}

export function isAscii(text: string): boolean {
  return !/\P{ASCII}/u.test(text);
}

const UTF8 = new TextDecoder();
/** Lower-case letters that are not the lower case of their upper case; NFKC leaves no others. */
const ONE_WAY = /ı|ς|\u0345|[\u1c80-\u1c88]/g;
/** Controls but NUL, and what has no width. */
const UNSEEN = /(?!\0)\p{Cc}|\p{Default_Ignorable_Code_Point}/gu;
