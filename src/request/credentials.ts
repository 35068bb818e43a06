import { MAX_KEY_LENGTH } from "../config/key-expression.ts";
import { isBlank, withoutFinal } from "./text-folding.ts";

/** A longer field is absent, as the credential in it would be: base64 and padding add a third. */
const MAX_WRITTEN = 2 * MAX_KEY_LENGTH;

/**
 * The credential in an Authorization field, in one spelling. The scheme is left out: many origins
 * take any, or none. The signature of a JWT is decoded, because base64 has many spellings of the same
 * bytes; a `Basic` credential is absent in any spelling but an encoder's.
 *
 * @param value without blanks at its ends
 * @returns undefined for more than a scheme and one word, of which origins take the first, the last or
 * all; and where `bearer` is anywhere but the scheme, since some origins remove it from any place
 */
export function credentials(value: string): string | undefined {
  if (value.length > MAX_WRITTEN) return undefined;
  const [first = "", second, ...more] = words(value, 3);
  if (more.length > 0) return undefined;
  const word = second ?? first;
  if (/bearer/i.test(word)) return undefined;
  if (second === undefined) return credential(word);
  const scheme = withoutFinal(":", first).toLowerCase();
  if (scheme === "basic") return asEncoded(word);
  return scheme !== "bearer" && /bearer|basic/.test(scheme) ? undefined : credential(word);
}

/** The first words of a text, `max` at most. */
function words(text: string, max: number): string[] {
  const found: string[] = [];
  let start = 0;
  for (let at = 0; at <= text.length && found.length < max; at++) {
    if (at < text.length && !isBlank(text.charCodeAt(at))) continue;
    if (at > start) found.push(text.slice(start, at));
    start = at + 1;
  }
  return found;
}

/** The word behind `Bearer`, `Token` (which Rails also writes as `token="…"`) and the like. */
function credential(word: string): string | undefined {
  // A parameter list, of which origins read one part or another.
  if (word.includes(";")) return undefined;
  const bare = withoutFinal("=", word.replaceAll('"', "").replace(/^token=/i, ""));
  if (!isSigned(bare)) return bare;
  // Decoders stop at padding inside a text, or skip it.
  return bare.includes("=") ? undefined : withSignatureDecoded(bare);
}

/**
 * The credential of `Basic`, without padding. Decoders differ in the characters that they skip and in
 * where they stop, so a text that is not exactly what an encoder makes of its bytes is absent.
 */
function asEncoded(word: string): string | undefined {
  const letters = withoutFinal("=", word);
  if (!/^[A-Za-z0-9+/]+$/.test(letters) || letters.length % 4 === 1) return undefined;
  return withoutFinal("=", btoa(atob(letters))) === letters ? letters : undefined;
}

/** Whether a text has the form of a JWT, signed (three parts) or encrypted (five). */
function isSigned(word: string): boolean {
  const parts = word.split(".", 6).length;
  return /^e[yw]/.test(word) && (parts === 3 || parts === 5);
}

/** The first part stays as it is: a signature covers its very text. */
function withSignatureDecoded(jwt: string): string {
  const [header, ...parts] = jwt.split(".");
  return [header, ...parts.map(decoded)].join(".");
}

/** The bytes of a text in base64. Decoders skip other characters, and unused bits at the end. */
function decoded(base64: string): string {
  const letters = base64.replace(/[^\w+/-]/g, "");
  // A single letter behind the last four holds no byte.
  const whole = letters.length % 4 === 1 ? letters.slice(0, -1) : letters;
  return atob(whole.replaceAll("-", "+").replaceAll("_", "/"));
}
