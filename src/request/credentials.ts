import { MAX_KEY_LENGTH } from "../config/key-expression.ts";
import { isBlank, removeTrailing } from "./text-folding.ts";

/** The longest field that is read. Base64 and padding make a credential a third longer. */
const MAX_FIELD_LENGTH = 2 * MAX_KEY_LENGTH;

/**
 * Reads the credential of an Authorization field and returns it in one spelling. The scheme is left
 * out, because many origins accept any scheme or none. The signature of a JWT is decoded, because
 * base64 has many spellings of the same bytes. A `Basic` credential is absent unless an
 * encoder would write it so.
 *
 * @param value without blanks at its ends
 * @returns undefined where origins may read different credentials. Such a field has more than a scheme
 * and one word, of which origins take the first, the last or all words. Or it has `bearer` outside the
 * scheme, and some origins remove that word anywhere
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

/** The first words of a text, `max` at most. */
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

/** Reads the word after `Bearer`, `Token` (which Rails also writes as `token="…"`) and similar schemes. */
function readToken(word: string): string | undefined {
  // A list of parameters. Origins differ in the parameter that they read.
  if (word.includes(";")) return undefined;
  const bare = removeTrailing("=", word.replaceAll('"', "").replace(/^token=/i, ""));
  if (!isJwt(bare)) return bare;
  // Some decoders stop at padding inside a text, and others skip it.
  return bare.includes("=") ? undefined : decodeJwtParts(bare);
}

/**
 * Reads the credential of `Basic`, without padding. Decoders differ in the characters that they skip and
 * in where they stop. So a text that an encoder would write differently is absent.
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

/** Decodes all parts but the first, which stays as written: the signature covers its exact text. */
function decodeJwtParts(jwt: string): string {
  const [header, ...parts] = jwt.split(".");
  return [header, ...parts.map(decodeBase64)].join(".");
}

/** Decodes base64 leniently: decoders skip other characters, and ignore unused bits at the end. */
function decodeBase64(base64: string): string {
  const letters = base64.replace(/[^\w+/-]/g, "");
  // A single letter after a group of four encodes no byte.
  const complete = letters.length % 4 === 1 ? letters.slice(0, -1) : letters;
  return atob(complete.replaceAll("-", "+").replaceAll("_", "/"));
}
