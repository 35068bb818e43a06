import { MAX_KEY_LENGTH } from "../config/key.ts";
import { isBlank, removeTrailing } from "./text-folding.ts";

/**
 * The maximum length of a field that Weir reads, in characters. The field may be longer than a key,
 * because base64 and padding make a credential longer by a third.
 */
const MAX_FIELD_LENGTH = 2 * MAX_KEY_LENGTH;

/**
 * Returns the credential of an Authorization field in one spelling. It omits the scheme, because
 * many origins accept any scheme or none. It decodes the signature of a JWT, because base64 has
 * many spellings of the same bytes. A `Basic` credential counts as absent if a base64 encoder would
 * write it differently.
 *
 * @param value the field's value without blanks at its ends
 * @returns undefined if origins may read different credentials. If a field has a scheme and more
 * than one word after it, some origins take the first word, some the last word, and some all words.
 * If the credential itself contains `bearer`, the result is undefined too, because some origins
 * remove this word wherever it is
 */
export function readCredential(value: string): string | undefined {
  if (value.length > MAX_FIELD_LENGTH) return undefined;
  const [first = "", second, ...more] = splitWords(value, 3);
  if (more.length > 0) return undefined;
  const word = second ?? first;
  if (/bearer/i.test(word)) return undefined;
  if (second === undefined) return readToken(word);
  const scheme = removeTrailing(":", first).toLowerCase();
  if (scheme === "basic") return readBasic(word);
  return scheme !== "bearer" && /bearer|basic/.test(scheme) ? undefined : readToken(word);
}

/** Returns the first words of a text, at most `max`. */
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

/** Reads the word after `Bearer`, `Token` or a similar scheme. Rails also writes `token="…"`. */
function readToken(word: string): string | undefined {
  // A word with a semicolon is a list of parameters. Each origin may read a different parameter.
  if (word.includes(";")) return undefined;
  const bare = removeTrailing("=", word.replaceAll('"', "").replace(/^token=/i, ""));
  if (!isJwt(bare)) return bare;
  // Some decoders stop at padding inside a text, and others skip it. So such a text counts as
  // absent.
  return bare.includes("=") ? undefined : decodeJwtParts(bare);
}

/**
 * Returns the credential of the scheme `Basic`, without padding. Some decoders skip characters that
 * other decoders do not skip, and some stop earlier than others. So the credential counts as absent
 * if an encoder would write it differently.
 */
function readBasic(word: string): string | undefined {
  const letters = removeTrailing("=", word);
  if (!/^[A-Za-z0-9+/]+$/.test(letters) || letters.length % 4 === 1) return undefined;
  return removeTrailing("=", btoa(atob(letters))) === letters ? letters : undefined;
}

/** Whether a text has the form of a JWT, either signed (three parts) or encrypted (five parts). */
function isJwt(word: string): boolean {
  const parts = word.split(".", 6).length;
  return /^e[yw]/.test(word) && (parts === 3 || parts === 5);
}

/**
 * Decodes all parts except the first. The first part stays unchanged, because the signature covers
 * its exact text.
 */
function decodeJwtParts(jwt: string): string {
  const [header, ...parts] = jwt.split(".");
  return [header, ...parts.map(decodeBase64)].join(".");
}

/**
 * Decodes base64 like lenient decoders. They skip characters that are not base64, and unused bits
 * at the end.
 */
function decodeBase64(base64: string): string {
  const letters = base64.replace(/[^\w+/-]/g, "");
  // A single letter after the last group of four letters encodes no byte.
  const complete = letters.length % 4 === 1 ? letters.slice(0, -1) : letters;
  return atob(complete.replaceAll("-", "+").replaceAll("_", "/"));
}
