import { MAX_KEY_LENGTH } from "../config/key.ts";
import { readCredential } from "./credentials.ts";
import { decodeEscapes, trimBlanks } from "./text-folding.ts";

// These functions bring a value that identifies a client into one spelling, as the origin reads it.
// All spellings of one value become the same text. Otherwise each spelling of a valid API key or
// session would count as a new client. If origins may read different values, the value counts as
// absent, and the functions return undefined.

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
 * The maximum number of times that escapes are decoded. Most origins decode once, careless ones
 * twice. A value that still has escapes counts as absent.
 */
const MAX_DECODINGS = 3;
/** Matches a byte that is not UTF-8, in a decoded text, and a NUL. Some servers drop either, or cut there. */
const UNCLEAR = /%[89a-f][\da-f]|[\0\ufffd]/i;
/** Matches a quoted string of RFC 2109, as Python, Java and werkzeug write it. */
const QUOTED = /^"(?:[^"\\]|\\.)*"$/s;

/** Whether the runtime may have joined two fields of this name with a comma. */
export function hasUnclearCommas(name: string, value: string): boolean {
  return value.includes(",") && !LISTS.test(name);
}

/**
 * Returns the value of a header field in one spelling.
 *
 * @param name the name of the field, in lower case
 * @returns undefined if origins may read different values, for example because the field was sent
 * twice. In that case, the runtime joins both values by a comma
 */
export function headerValue(name: string, value: string): string | undefined {
  if (hasUnclearCommas(name, value)) return undefined;
  const bare = trimBlanks(value);
  // Origins that drop bytes that are not UTF-8 read the same value whatever these bytes are.
  if (bare.includes("\ufffd")) return undefined;
  return hasCredential(name) ? readCredential(bare) : bare;
}

/** Whether the values of a header field consist of a scheme and a credential. */
export function hasCredential(name: string): boolean {
  return CREDENTIALS.test(name);
}

/** Returns the value of a query parameter in one spelling, from its encoded or its decoded text. */
export function queryValue(text: string): string | undefined {
  const decoded = decodeAll(text);
  if (decoded === undefined) return undefined;
  const bare = trimBlanks(decoded);
  return UNCLEAR.test(bare) ? undefined : bare;
}

/**
 * Returns the value of a cookie in one spelling, from its encoded text. A text in quotes may have the
 * escapes that Python writes.
 *
 * @returns undefined if servers disagree about the value. Python ends it at white space outside quotes.
 * If a quote opens it and none closes it, `cookie` of npm before 0.7 drops the first and the last
 * character, whatever the last one is. Servers that know escapes read `\x` as `x`, and others keep it
 */
export function encodedCookieValue(text: string): string | undefined {
  const trimmed = trimBlanks(text);
  if (trimmed.startsWith('"')) {
    if (!QUOTED.test(trimmed)) return undefined;
    const bare = trimmed.slice(1, -1);
    return cookieValue(bare.includes("\\") ? withoutEscapes(bare) : bare);
  }
  return /[\0-\x20\\]/.test(trimmed) ? undefined : cookieValue(trimmed);
}

/** Returns the value of a cookie in one spelling, from a text without quotes and backslash escapes. */
export function cookieValue(text: string): string | undefined {
  const decoded = decodeAll(text);
  if (decoded === undefined || decoded.includes("\\")) return undefined;
  const bare = trimBlanks(decoded, true);
  return UNCLEAR.test(bare) ? undefined : bare;
}

/**
 * Decodes a text until nothing changes. So a text has the same result as the text that an origin gets
 * by decoding it once, twice or not at all.
 */
function decodeAll(text: string): string | undefined {
  if (text.length > MAX_ENCODED_LENGTH) return undefined;
  let decoded = text;
  for (let count = 0; count <= MAX_DECODINGS; count++) {
    if (!/[%+]/.test(decoded)) return decoded;
    const next = decodeLeniently(decoded);
    if (next === decoded) return decoded;
    decoded = next;
  }
  return undefined;
}

/**
 * Decodes a query parameter or a cookie once. It reads a plus sign as a space, as PHP does, and
 * decodes `%u0061` too, as some servers still do.
 */
export function decodeLeniently(text: string): string {
  const standard = text.replaceAll("+", " ").replace(/%u([0-9a-f]{4})/gi, characterOfHex);
  return decodeEscapes(standard);
}

function withoutEscapes(text: string): string {
  // If there are no octal escapes, the faster replacement without a function is enough.
  return /\\[0-3]/.test(text)
    ? text.replace(/\\([0-3][0-7]{2}|.)/gs, characterOfEscape)
    : text.replace(/\\(.)/gs, "$1");
}

function characterOfEscape(_: string, escaped: string): string {
  return escaped.length === 3 ? String.fromCharCode(Number.parseInt(escaped, 8)) : escaped;
}

function characterOfHex(_: string, code: string): string {
  return String.fromCharCode(Number.parseInt(code, 16));
}
