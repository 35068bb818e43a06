import { MAX_KEY_LENGTH } from "../config/key.ts";
import {
  decodeEscapes,
  decodeUnicodeEscapes,
  isBlank,
  removeTrailing,
  trimBlanks,
} from "./text-folding.ts";

// Brings a value that identifies a client into one spelling, as the origin reads it. Otherwise each spelling of a
// valid API key or session would count as a new client. If origins may read different values, the value counts as
// absent, and the functions return undefined.

/** Matches the names of headers that may contain commas and that no origin accepts as credentials. */
const LISTS = /^(user-agent|accept.*|sec-.*)$/;
const CREDENTIALS = /^(proxy-)?authorization$/;
/**
 * The maximum length of an encoded value, in characters. A longer value counts as absent. An escape such as `\141`
 * takes four characters.
 */
export const MAX_ENCODED_LENGTH = 4 * MAX_KEY_LENGTH;
/**
 * The maximum number of decoding rounds. Careless origins decode twice. A value that still has escapes counts as
 * absent.
 */
const MAX_DECODINGS = 3;
/**
 * Matches a NUL, or a byte that is not UTF-8, in a decoded text. Some servers drop these characters, or cut the text
 * there.
 */
const UNCLEAR = /%[89a-f][\da-f]|[\0\ufffd]/i;
/** Matches a quoted string of RFC 2109, as Python, Java and werkzeug write it. */
const QUOTED = /^"(?:[^"\\]|\\.)*"$/s;

/** Whether the runtime may have joined two headers of this name with a comma. */
export function hasUnclearCommas(name: string, value: string): boolean {
  return value.includes(",") && !LISTS.test(name);
}

/**
 * Returns the value of a header in one spelling.
 *
 * @param name the name of the header, in lower case
 * @returns undefined if origins may read different values, for example because the runtime has joined the values of a
 * header that was sent twice
 */
export function headerValue(name: string, value: string): string | undefined {
  if (hasUnclearCommas(name, value)) return undefined;
  const bare = trimBlanks(value);
  // Some origins drop bytes that are not UTF-8, so different bytes would give them the same value.
  if (bare.includes("\ufffd")) return undefined;
  return hasCredential(name) ? readCredential(bare) : bare;
}

/** Whether the values of a header have a scheme and a credential. */
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
 * Returns the value of a cookie in one spelling, from its encoded text. A text in quotes may have the escapes that
 * Python writes.
 *
 * @returns undefined if servers disagree about the value. Python ends a value at white space outside quotes. If a
 * value has only an opening quote, `cookie` of npm before 0.7 drops its first and its last character. Some servers
 * read `\x` as `x`, and other servers keep `\x`
 */
export function encodedCookieValue(text: string): string | undefined {
  const trimmed = trimBlanks(text);
  if (trimmed.startsWith('"')) {
    const bare = trimmed.slice(1, -1);
    if (bare.length > MAX_ENCODED_LENGTH || !QUOTED.test(trimmed)) return undefined;
    return cookieValue(bare.includes("\\") ? withoutEscapes(bare) : bare);
  }
  return /[\0-\x20\\]/.test(trimmed) ? undefined : cookieValue(trimmed);
}

/** Returns the canonical form of a cookie's value, which has no quotes and no backslash escapes. */
export function cookieValue(text: string): string | undefined {
  const decoded = decodeAll(text);
  if (decoded === undefined || decoded.includes("\\")) return undefined;
  const bare = trimBlanks(decoded, true);
  return UNCLEAR.test(bare) ? undefined : bare;
}

/** Decodes a text until nothing changes, because an origin may decode it once, twice or not at all. */
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

/** Decodes once. A plus sign becomes a space, as in PHP. `%u0061` is decoded, as by some old servers. */
export function decodeLeniently(text: string): string {
  return decodeEscapes(decodeUnicodeEscapes(text.replaceAll("+", " ")));
}

function withoutEscapes(text: string): string {
  // Without octal escapes, the faster replacement by a text is enough.
  if (!/\\[0-3]/.test(text)) return text.replace(/\\(.)/gs, "$1");
  return text.replace(/\\([0-3][0-7]{2}|.)/gs, (_, escaped: string) =>
    escaped.length === 3 ? String.fromCharCode(Number.parseInt(escaped, 8)) : escaped,
  );
}

/** In characters. Longer than a key, because base64 makes a credential longer by a third. */
const MAX_CREDENTIAL_LENGTH = 2 * MAX_KEY_LENGTH;

/**
 * Returns the credential of an Authorization header in one spelling. Omits the scheme, because many origins accept
 * any scheme or none. Decodes the signature of a JWT, because base64 has many spellings of the same bytes. A `Basic`
 * credential counts as absent if a base64 encoder would write it differently.
 *
 * @param value the header's value without blanks at its ends
 * @returns undefined if origins may read different credentials. If there are several words after the scheme, origins
 * differ in whether they take the first word, the last word or all words. If the credential itself contains `bearer`,
 * some origins remove this word
 */
export function readCredential(value: string): string | undefined {
  if (value.length > MAX_CREDENTIAL_LENGTH) return undefined;
  const [first = "", second, ...more] = splitWords(value, 3);
  if (more.length > 0) return undefined;
  const word = second ?? first;
  if (/bearer/i.test(word)) return undefined;
  if (second === undefined) return readToken(word);
  const scheme = removeTrailing(":", first).toLowerCase();
  if (scheme === "basic") return readBasic(word);
  return scheme !== "bearer" && /bearer|basic/.test(scheme) ? undefined : readToken(word);
}

/** Returns the words of a text, at most `max`. */
function splitWords(text: string, max: number): string[] {
  const words: string[] = [];
  let start = 0;
  for (let index = 0; index <= text.length && words.length < max; index++) {
    if (index < text.length && !isBlank(text.charCodeAt(index))) continue;
    if (index > start) words.push(text.slice(start, index));
    start = index + 1;
  }
  return words;
}

/** Reads the word after `Bearer`, `Token` or a similar scheme, also in the form `token="…"` of Rails. */
function readToken(word: string): string | undefined {
  // A word with a semicolon is a list of parameters, of which each origin may read a different one.
  if (word.includes(";")) return undefined;
  const bare = removeTrailing("=", word.replaceAll('"', "").replace(/^token=/i, ""));
  if (!isJwt(bare)) return bare;
  // A text with padding inside counts as absent, because some decoders stop there, and others skip it.
  return bare.includes("=") ? undefined : decodeJwtParts(bare);
}

/**
 * Returns the credential of the scheme `Basic`, without padding. It counts as absent if an encoder would write it
 * differently, because decoders differ in the characters that they skip and in where they stop.
 */
function readBasic(word: string): string | undefined {
  const letters = removeTrailing("=", word);
  if (!/^[A-Za-z0-9+/]+$/.test(letters) || letters.length % 4 === 1) return undefined;
  return removeTrailing("=", btoa(atob(letters))) === letters ? letters : undefined;
}

/** A JWT has three parts if it is signed, and five if it is encrypted. */
function isJwt(word: string): boolean {
  const parts = word.split(".", 6).length;
  return /^e[yw]/.test(word) && (parts === 3 || parts === 5);
}

/**
 * Decodes all parts of a JWT except the first one. The first part must stay unchanged, because the signature covers
 * its exact text.
 */
function decodeJwtParts(jwt: string): string {
  const [header, ...parts] = jwt.split(".");
  return [header, ...parts.map(decodeBase64)].join(".");
}

/** Decodes like lenient decoders: skips characters that are not base64, and unused bits at the end. */
function decodeBase64(base64: string): string {
  const letters = base64.replace(/[^\w+/-]/g, "");
  // A single letter after the last group of four letters encodes no byte.
  const complete = letters.length % 4 === 1 ? letters.slice(0, -1) : letters;
  return atob(complete.replaceAll("-", "+").replaceAll("_", "/"));
}
