// These functions find names and texts in queries and cookies. The loops over characters are in
// functions of their own, because such a loop takes twice as long in a generator.

const SPACE = 0x20;
export const COMMA = 0x2c;
const SEMICOLON = 0x3b;
const EQUALS = 0x3d;

/** A name and its encoded text in a query or in cookies. */
export type Pair = readonly [name: string, text: string, besideSeparator: boolean];

/**
 * Yields the pairs of a name and a text. Pairs are separated by semicolons or by the given
 * separator. The third element is true if the given separator is directly before or after the pair.
 * The function does not split the whole text first, because thousands of separators would create
 * thousands of texts.
 *
 * @param withBareNames whether to yield names without `=` too
 */
export function* pairsIn(text: string, separator: number, withBareNames = false): Generator<Pair> {
  let afterSeparator = false;
  for (let start = 0, end = 0; start <= text.length; start = end + 1) {
    end = endOfPair(text, start, separator);
    const beforeSeparator = text.charCodeAt(end) === separator;
    const equals = equalsIn(text, start, end);
    if (equals < end || (withBareNames && end > start)) {
      const besideSeparator = beforeSeparator || afterSeparator;
      yield [text.slice(start, equals), text.slice(equals + 1, end), besideSeparator];
    }
    afterSeparator = beforeSeparator;
  }
}

/** @returns the position of the next separator, or the length of the text */
function endOfPair(text: string, start: number, separator: number): number {
  let end = start;
  while (end < text.length && !isSeparator(text.charCodeAt(end), separator)) end++;
  return end;
}

/** @returns the position of the first `=` in a pair, or the end of the pair */
function equalsIn(text: string, start: number, end: number): number {
  let equals = start;
  while (equals < end && text.charCodeAt(equals) !== EQUALS) equals++;
  return equals;
}

/**
 * Whether a name follows white space inside a pair. Python's http.cookies starts a new pair at such
 * a name. A regular expression or a generator would take longer for thousands of names.
 */
export function hasNameAfterSpace(text: string, isNamed: (sentName: string) => boolean): boolean {
  for (let equals = text.indexOf("="); equals !== -1; equals = text.indexOf("=", equals + 1)) {
    const end = startOfSpace(text, equals);
    const start = startOfName(text, end);
    const before = startOfSpace(text, start);
    const isInPair = before > 0 && !isSeparator(text.charCodeAt(before - 1), COMMA);
    if (isInPair && before < start && isNamed(text.slice(start, end))) return true;
  }
  return false;
}

function startOfSpace(text: string, end: number): number {
  let start = end;
  while (start > 0 && text.charCodeAt(start - 1) <= SPACE) start--;
  return start;
}

function startOfName(text: string, end: number): number {
  let start = end;
  while (start > 0 && isOfName(text.charCodeAt(start - 1))) start--;
  return start;
}

function isOfName(code: number): boolean {
  return code > SPACE && code !== EQUALS && !isSeparator(code, COMMA);
}

function isSeparator(code: number, separator: number): boolean {
  return code === SEMICOLON || code === separator;
}
