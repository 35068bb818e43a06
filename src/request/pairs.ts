// These functions find names and texts in queries and cookies. They create no text, because thousands
// of pairs would create thousands of texts. Generators would take twice as long.

export const AMPERSAND = 0x26;
export const COMMA = 0x2c;
export const SEMICOLON = 0x3b;
const SPACE = 0x20;
const EQUALS = 0x3d;

/** The positions of a name and its encoded text in a query or in cookies. */
export interface Pair {
  readonly start: number;
  /** The position of the first `=`; the end of the pair if it has none. */
  readonly equals: number;
  readonly end: number;
  /** The separator before the pair, as a UTF-16 code unit; `NaN` at the start. */
  readonly before: number;
  /** The separator after the pair; `NaN` at the end. */
  readonly after: number;
}

/**
 * Calls a function for each pair of a name and a text. Pairs are separated by semicolons or by the
 * given separator.
 */
export function forEachPair(text: string, separator: number, visit: (pair: Pair) => void): void {
  let start = 0;
  let equals = -1;
  let before = Number.NaN;
  for (let end = 0; end <= text.length; end++) {
    const after = text.charCodeAt(end);
    if (after === EQUALS) {
      if (equals === -1) equals = end;
    } else if (after === SEMICOLON || after === separator || end === text.length) {
      if (end > start) visit({ start, equals: equals === -1 ? end : equals, end, before, after });
      start = end + 1;
      equals = -1;
      before = after;
    }
  }
}

/**
 * Calls a function for each name that follows white space inside a pair. Python's http.cookies starts
 * a new pair at such a name.
 */
export function forEachNameAfterSpace(
  text: string,
  visit: (start: number, end: number) => void,
): void {
  let isInPair = false;
  let isAfterSpace = false;
  /** The start and the end of the last word; -1 if there is none or if it is not complete. */
  let start = -1;
  let end = -1;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === SEMICOLON || code === COMMA) {
      isInPair = false;
      isAfterSpace = false;
      start = -1;
    } else if (code <= SPACE) {
      if (end === -1) end = index;
      isAfterSpace = isInPair;
    } else if (code === EQUALS) {
      if (start !== -1) visit(start, end === -1 ? index : end);
      isInPair = true;
      isAfterSpace = false;
      start = -1;
      end = -1;
    } else {
      if (isAfterSpace) start = index;
      else if (end !== -1) start = -1;
      end = -1;
      isInPair = true;
      isAfterSpace = false;
    }
  }
}
