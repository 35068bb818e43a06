// These functions find names and texts in queries and cookies. The loops over characters are in
// functions of their own, because such a loop takes twice as long in a generator.

const SPACE = 0x20;
export const AMPERSAND = 0x26;
export const COMMA = 0x2c;
export const SEMICOLON = 0x3b;
const EQUALS = 0x3d;

/**
 * A name and its encoded text in a query or in cookies, with the separators around them. A separator
 * is a UTF-16 code unit; it is `NaN` at the start and at the end.
 */
export type Pair = readonly [name: string, text: string, before: number, after: number];

/**
 * Yields the pairs of a name and a text. Pairs are separated by semicolons or by the given
 * separator. The function does not split the whole text first, because thousands of separators would
 * create thousands of texts.
 *
 * @param withBareNames whether to yield names without `=` too
 * @param mayBegin leaves out pairs whose name begins with a code unit for which it returns false
 */
export function* pairsIn(
  text: string,
  separator: number,
  withBareNames = false,
  mayBegin?: (code: number) => boolean,
): Generator<Pair> {
  let before = Number.NaN;
  for (let start = 0, end = 0; start <= text.length; start = end + 1) {
    end = endOfPair(text, start, separator);
    const after = text.charCodeAt(end);
    const isSkipped = mayBegin && !mayBegin(text.charCodeAt(endOfSpaces(text, start)));
    const equals = isSkipped ? end : equalsIn(text, start, end);
    if (equals < end || (withBareNames && end > start)) {
      yield [text.slice(start, equals), text.slice(equals + 1, end), before, after];
    }
    before = after;
  }
}

/** @returns the position of the next separator, or the length of the text */
function endOfPair(text: string, start: number, separator: number): number {
  let end = start;
  while (end < text.length && !isSeparator(text.charCodeAt(end), separator)) end++;
  return end;
}

function endOfSpaces(text: string, start: number): number {
  let end = start;
  while (text.charCodeAt(end) === SPACE) end++;
  return end;
}

/** @returns the position of the first `=` in a pair, or the end of the pair */
function equalsIn(text: string, start: number, end: number): number {
  let equals = start;
  while (equals < end && text.charCodeAt(equals) !== EQUALS) equals++;
  return equals;
}

/**
 * Yields the names that follow white space inside a pair. Python's http.cookies starts a new pair at
 * such a name.
 *
 * @param mayBegin leaves out names that begin with a code unit for which it returns false
 */
export function* namesAfterSpace(
  text: string,
  mayBegin: (code: number) => boolean,
): Generator<string> {
  for (let equals = text.indexOf("="); equals !== -1; equals = text.indexOf("=", equals + 1)) {
    const end = startOfSpace(text, equals);
    const start = startOfName(text, end);
    if (!mayBegin(text.charCodeAt(start))) continue;
    const before = startOfSpace(text, start);
    const isInPair = before > 0 && !isSeparator(text.charCodeAt(before - 1), COMMA);
    if (isInPair && before < start) yield text.slice(start, end);
  }
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
