import { MAX_KEY_LENGTH } from "../config/key-expression.ts";
import { credentials } from "./credentials.ts";
import { createNameTest } from "./lenient-name.ts";
import { decodeEscapes, trimBlanks } from "./text-folding.ts";

// The value that a request carries under a name, as the origin reads it. Two spellings of one value
// become one, and where the origin may read another value than Weir, the value is absent. Otherwise
// one good API key or session would be a new client in each spelling.

/** Header fields whose own grammar has commas, and that no origin takes for a credential. */
const LISTS = /^(user-agent|accept.*|sec-.*)$/;
/** A longer value is absent, as one of more than {@link MAX_KEY_LENGTH} is: four times that, for `\141`. */
const MAX_WRITTEN = 4 * MAX_KEY_LENGTH;

/**
 * @param name in lower case
 * @returns undefined also for a field that was sent twice: its values come joined by a comma
 */
export function headerNamed(headers: Headers, name: string): string | undefined {
  const value = headers.get(name);
  if (!value || (value.includes(",") && !LISTS.test(name))) return undefined;
  return headerValue(name, value);
}

/** The value of a header field, in one spelling; undefined when origins may read different ones. */
export function headerValue(name: string, value: string): string | undefined {
  const bare = trimBlanks(value);
  return /^(proxy-)?authorization$/.test(name) ? credentials(bare) : bare;
}

/**
 * @returns undefined also for a cookie beside a comma: several Cookie fields arrive as one, joined by
 * commas, some origins divide cookies at commas, and others take the comma for a part of the value
 */
export function cookieNamed(headers: Headers, name: string): string | undefined {
  const cookies = headers.get("cookie");
  return cookies ? singleValue(cookiesIn(cookies), name, readCookie) : undefined;
}

/**
 * @param search a URL's query, with its question mark. Some servers still divide parameters at `;`,
 * too
 */
export function queryNamed(search: string, name: string): string | undefined {
  return singleValue(pairsOf(search.slice(1), AMPERSAND), name, readParameter);
}

/** A decoded query parameter in one spelling. A plus sign is a space to some servers. */
export function queryValue(text: string): string {
  return trimBlanks(text.replaceAll("+", " "));
}

/** A decoded cookie in one spelling. PHP decodes cookies as it does queries. */
export function cookieValue(text: string): string {
  return trimBlanks(text.replaceAll("+", " "), true);
}

const AMPERSAND = 0x26;
const COMMA = 0x2c;
const SEMICOLON = 0x3b;
const EQUALS = 0x3d;

/** The text under a name; undefined where origins read different texts under it. */
type Pair = readonly [name: string, text: string | undefined];

/** White space inside a pair, then a name: Python's http.cookies begins another pair there. */
const BEHIND_SPACE = /(?<=[^\0-\x20;,])[\0-\x20]+([^\0-\x20;,=]+)[\0-\x20]*=/g;

function* cookiesIn(text: string): Generator<Pair> {
  for (const [name, value, besideComma] of pairsOf(text, COMMA)) {
    yield [name, besideComma ? undefined : value];
  }
  for (const [, name = ""] of text.matchAll(BEHIND_SPACE)) yield [name, undefined];
}

/**
 * The pairs of a name and a value, divided by semicolons and another character, and whether that
 * character is at either end. Walks over the text, because thousands of separators would make thousands
 * of texts.
 */
function* pairsOf(
  text: string,
  divider: number,
): Generator<readonly [name: string, text: string, besideDivider: boolean]> {
  let start = 0;
  let behindDivider = false;
  let equals = -1;
  for (let at = 0; at <= text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === EQUALS && equals === -1) equals = at;
    if (at < text.length && code !== SEMICOLON && code !== divider) continue;
    const isDivider = code === divider;
    if (equals !== -1) {
      yield [text.slice(start, equals), text.slice(equals + 1, at), isDivider || behindDivider];
    }
    start = at + 1;
    equals = -1;
    behindDivider = isDivider;
  }
}

/** Two values for one name leave open which of them the origin takes, so they count as none. */
function singleValue(
  pairs: Iterable<Pair | readonly [string, string, boolean]>,
  name: string,
  read: (text: string) => string | undefined,
): string | undefined {
  const isNamed = createNameTest(name);
  let found: string | undefined;
  for (const [given, text] of pairs) {
    if (given !== name && !isNamed(given)) continue;
    if (found !== undefined || text === undefined) return undefined;
    found = text;
  }
  return found === undefined || found.length > MAX_WRITTEN ? undefined : read(found);
}

/** Some servers still decode `%u0061`. */
function readParameter(text: string): string {
  const plain = text.replaceAll("+", " ").replace(/%u([0-9a-f]{4})/gi, fromCode);
  return queryValue(decodeEscapes(plain));
}

/**
 * RFC 2109's quoted string, with the escapes that Python puts into it, and then percent escapes.
 *
 * @returns undefined for white space outside quotes, at which Python's http.cookies ends a value
 */
function readCookie(text: string): string | undefined {
  const written = trimBlanks(text);
  if (/[\0-\x20]/.test(written) && !/^"(?:[^"\\]|\\.)*"$/s.test(written)) return undefined;
  const bare = trimBlanks(text, true);
  // Without octal escapes no function has to be called for each backslash.
  const plain = /\\[0-3]/.test(bare)
    ? bare.replace(/\\([0-3][0-7]{2}|.)/gs, fromOctal)
    : bare.replace(/\\(.)/gs, "$1");
  return cookieValue(decodeEscapes(plain));
}

function fromOctal(_: string, escaped: string): string {
  return escaped.length === 3 ? String.fromCharCode(Number.parseInt(escaped, 8)) : escaped;
}

function fromCode(_: string, code: string): string {
  return String.fromCharCode(Number.parseInt(code, 16));
}
