const SPACE = 32;
const BACKSLASH = 92;

/**
 * Returns the index of the quote that ends a quoted field. A quote inside the field has a backslash before it.
 * Servers that escape nothing exist too, so a quote counts only with a space or the line's end after it.
 *
 * @param from the index of the field's first character
 * @returns -1 if the line ends inside the field
 */
export function closingQuote(line: string, from: number): number {
  let quote = line.indexOf('"', from);
  while (quote !== -1) {
    const isEnd = quote + 1 === line.length || line.charCodeAt(quote + 1) === SPACE;
    if (isEnd && !isEscaped(line, quote, from)) return quote;
    quote = line.indexOf('"', quote + 1);
  }
  return -1;
}

/** Whether an odd number of backslashes is before a character. */
function isEscaped(line: string, index: number, from: number): boolean {
  let start = index;
  while (start > from && line.charCodeAt(start - 1) === BACKSLASH) start--;
  return (index - start) % 2 === 1;
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
