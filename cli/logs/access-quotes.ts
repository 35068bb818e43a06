const SPACE = 32;
const BACKSLASH = 92;

/** Returns the index of a character in a part of a text; -1 if it is not there. */
export function indexBefore(text: string, character: string, from: number, to: number): number {
  const index = text.indexOf(character, from);
  return index < to ? index : -1;
}

/**
 * Returns the index of the quote that ends a quoted field. A quote inside the field has a backslash before it.
 * Servers that escape nothing exist too, so a quote counts only with a space or the line's end after it.
 *
 * @param from the index of the field's first character
 * @param to the end of the line
 * @returns -1 if the line ends inside the field
 */
export function closingQuote(text: string, from: number, to: number): number {
  let quote = text.indexOf('"', from);
  while (quote !== -1 && quote < to) {
    const isEnd = quote + 1 === to || text.charCodeAt(quote + 1) === SPACE;
    if (isEnd && !isEscaped(text, quote, from)) return quote;
    quote = text.indexOf('"', quote + 1);
  }
  return -1;
}

/** Whether an odd number of backslashes is before a character. */
function isEscaped(text: string, index: number, from: number): boolean {
  let start = index;
  while (start > from && text.charCodeAt(start - 1) === BACKSLASH) start--;
  return (index - start) % 2 === 1;
}

/** Whether a part of a text has a backslash. A part of a text is rarely long enough to make `indexOf` faster. */
export function hasEscape(text: string, from: number, to: number): boolean {
  for (let index = from; index < to; index++) {
    if (text.charCodeAt(index) === BACKSLASH) return true;
  }
  return false;
}

/** Apache's escapes, and the only one of nginx: `\xHH`. One match is a run, so that it may contain UTF-8. */
const ESCAPES = /(?:\\(?:x[\dA-Fa-f]{2}|["\\abfnrtv]))+/g;
const ESCAPE = /\\(?:x(..)|(.))/g;

const BYTES: Readonly<Record<string, number>> = {
  '"': 0x22,
  "\\": 0x5c,
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
};

/** Returns the text of a quoted field without its escapes. */
export function unescaped(field: string): string {
  return field.replace(ESCAPES, (run) => {
    const escapes = [...run.matchAll(ESCAPE)];
    const bytes = escapes.map(([, hex, letter]) =>
      hex === undefined ? (BYTES[letter ?? ""] ?? 0) : Number.parseInt(hex, 16),
    );
    return Buffer.from(bytes).toString();
  });
}
