import type { KeyPart } from "../config/key-expression.ts";
import { areTierNamesSecret } from "../config/tier-names.ts";

/** The maximum length of a value of the request in an explanation, in characters. */
const MAX_SHOWN = 200;
/** The maximum number of characters of a value that may be a credential. */
const MAX_REVEALED = 4;

/** Returns a text of the request, shortened. */
export function shownText(text: string): string {
  return text.length <= MAX_SHOWN
    ? text
    : `${text.slice(0, MAX_SHOWN)}… (${text.length} characters)`;
}

/** Returns a text of the request in quotation marks, shortened. */
export function quoted(text: string): string {
  return JSON.stringify(shownText(text));
}

/** Returns the beginning and the length of a text that may be a credential. */
export function shownCredential(text: string): string {
  const revealed = text.slice(0, Math.min(MAX_REVEALED, Math.floor(text.length / 3)));
  return `${revealed}… (${text.length} characters)`;
}

/**
 * Matches the names of header fields and query parameters whose values may be credentials. It matches too many
 * names rather than too few.
 */
const CREDENTIAL_NAME =
  /auth|token|secret|key|pass|pwd|sess|sid|sig|cred|cookie|jwt|bearer|otp|pin|code|hash|nonce|[cx]srf/i;

/** Whether a header field or a query parameter of this name may hold a credential. */
export function namesCredential(name: string): boolean {
  return CREDENTIAL_NAME.test(name);
}

/** Returns the value of a part of a key as an explanation shows it. */
export function shownValue(part: KeyPart, value: string): string {
  return isSecret(part) ? shownCredential(value) : shownText(value);
}

function isSecret(part: KeyPart): boolean {
  // The explanation shows the path, and so its parameters.
  return part.kind !== "param" && areTierNamesSecret([[part]]);
}

/** Returns a list of items as a text, with at most `max` of them. */
export function shownList(items: Iterable<string | number>, size: number, max = 10): string {
  const listed: string[] = [];
  for (const item of items) {
    if (listed.length === max) break;
    listed.push(String(item));
  }
  return listed.join(", ") + (size > max ? ` and ${size - max} more` : "");
}
