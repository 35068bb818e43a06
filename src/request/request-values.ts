import { MAX_KEY_LENGTH } from "../config/key-expression.ts";
import { readCredential } from "./credentials.ts";
import type { HeaderFields } from "./header-fields.ts";
import { createNameTest } from "./lenient-name.ts";
import { COMMA, hasNameAfterSpace, type Pair, pairsIn } from "./pairs.ts";
import { decodeEscapes, trimBlanks } from "./text-folding.ts";

// These functions read the value with a given name from a request, as the origin reads it. All
// spellings of one value become the same text. Otherwise each spelling of a valid API key or
// session would count as a new client. If the origin and Weir may read different values, the value
// counts as absent.

/**
 * Matches the names of header fields that may contain commas and that no origin accepts as
 * credentials.
 */
const LISTS = /^(user-agent|accept.*|sec-.*)$/;
const CREDENTIALS = /^(proxy-)?authorization$/;
/**
 * The maximum length of an encoded value, in characters. A longer value counts as absent, so Weir
 * does not decode it. The maximum is four times the length of a key, because an escape such as
 * `\141` takes four characters for one.
 */
export const MAX_ENCODED_LENGTH = 4 * MAX_KEY_LENGTH;

/**
 * Reads a header field.
 *
 * @param name the name of the field, in lower case
 * @returns undefined if the field is missing, or if origins may read different values, for example
 * because the field was sent twice. In that case, the runtime joins both values by a comma
 */
export function headerNamed(headers: HeaderFields, name: string): string | undefined {
  const value = headers.get(name);
  if (!value || hasUnclearCommas(name, value)) return undefined;
  return headerValue(name, value);
}

/** Whether the runtime may have joined two fields of this name with a comma. */
export function hasUnclearCommas(name: string, value: string): boolean {
  return value.includes(",") && !LISTS.test(name);
}

/** Returns a header's value in one spelling; undefined if origins may read different values. */
export function headerValue(name: string, value: string): string | undefined {
  const bare = trimBlanks(value);
  return hasCredential(name) ? readCredential(bare) : bare;
}

/** Whether the values of a header field consist of a scheme and a credential. */
export function hasCredential(name: string): boolean {
  return CREDENTIALS.test(name);
}

/**
 * Reads a cookie.
 *
 * @returns undefined if the cookie is missing, or if there is a comma next to it. The runtime joins
 * several Cookie fields into one field by commas. Some origins split cookies at commas, and others
 * read the comma as part of the value
 */
export function cookieNamed(headers: HeaderFields, name: string): string | undefined {
  const cookies = headers.get("cookie");
  if (!cookies) return undefined;
  const isNamed = createNameTest(name);
  const text = singleText(pairsIn(cookies, COMMA), isNamed, true);
  if (text === undefined || hasNameAfterSpace(cookies, isNamed)) return undefined;
  return decodeCookie(text);
}

/**
 * Reads a query parameter. Weir splits parameters at `;` too, because some servers still do this.
 *
 * @param search a URL's query, with its question mark
 */
export function queryNamed(search: string, name: string): string | undefined {
  const text = singleText(pairsIn(search.slice(1), AMPERSAND), createNameTest(name));
  return text === undefined ? undefined : decodeParameter(text);
}

/**
 * Yields the names and the encoded values of a query. A parameter without `=` has an empty value.
 *
 * @param search a URL's query, with its question mark
 */
export function parametersIn(search: string): Iterable<Pair> {
  return pairsIn(search.slice(1), AMPERSAND, true);
}

/** Returns a decoded query parameter in one spelling. Some servers read a plus sign as a space. */
export function queryValue(text: string): string {
  return trimBlanks(text.replaceAll("+", " "));
}

/** Returns a decoded cookie in one spelling. PHP decodes cookies in the same way as queries. */
export function cookieValue(text: string): string {
  return trimBlanks(text.replaceAll("+", " "), true);
}

const AMPERSAND = 0x26;

/**
 * Returns the encoded text of a name that occurs only once. If the name occurs twice, the origin may
 * read either text, so the value counts as absent. The same applies to a text beside a separator at
 * which only some origins split.
 */
function singleText(
  pairs: Iterable<Pair>,
  isNamed: (sentName: string) => boolean,
  hasUnclearSeparator = false,
): string | undefined {
  let single: string | undefined;
  for (const [sentName, text, besideSeparator] of pairs) {
    if (!isNamed(sentName)) continue;
    if (single !== undefined || (hasUnclearSeparator && besideSeparator)) return undefined;
    single = text;
  }
  return single === undefined || single.length > MAX_ENCODED_LENGTH ? undefined : single;
}

/** Decodes a query parameter, and returns it in one spelling. */
function decodeParameter(text: string): string {
  return queryValue(decodeLeniently(text));
}

/** Decodes a query parameter. The function also decodes `%u0061`, as some servers still do. */
export function decodeLeniently(text: string): string {
  const standard = text.replaceAll("+", " ").replace(/%u([0-9a-f]{4})/gi, characterOfHex);
  return decodeEscapes(standard);
}

/**
 * Decodes a cookie. It decodes a quoted string of RFC 2109 with the escapes that Python writes into
 * it, and then percent escapes.
 *
 * @returns undefined if there is white space outside quotes, because Python's http.cookies ends the
 * value at white space. Also undefined if a quote opens the text and none closes it, because many
 * servers in Node then remove the last character together with the quote
 */
function decodeCookie(text: string): string | undefined {
  const trimmed = trimBlanks(text);
  if (trimmed.startsWith('"') && !trimmed.endsWith('"')) return undefined;
  if (/[\0-\x20]/.test(trimmed) && !/^"(?:[^"\\]|\\.)*"$/s.test(trimmed)) return undefined;
  const bare = trimBlanks(text, true);
  // If there are no octal escapes, the faster replacement without a function is enough.
  const unescaped = /\\[0-3]/.test(bare)
    ? bare.replace(/\\([0-3][0-7]{2}|.)/gs, characterOfEscape)
    : bare.replace(/\\(.)/gs, "$1");
  return cookieValue(decodeEscapes(unescaped));
}

function characterOfEscape(_: string, escaped: string): string {
  return escaped.length === 3 ? String.fromCharCode(Number.parseInt(escaped, 8)) : escaped;
}

function characterOfHex(_: string, code: string): string {
  return String.fromCharCode(Number.parseInt(code, 16));
}
