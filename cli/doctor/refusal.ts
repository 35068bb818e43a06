import { type Finding, finding } from "./finding.ts";

/** The error of Redis if the user of the token may not use a key. */
const NO_KEY = /^NOPERM\b.*\baccess\b.*\bkeys?\b/i;

/**
 * Returns the finding for an error with which a database refuses to write.
 *
 * @returns undefined if the error has another reason
 */
export function refusal(error: string): Finding | undefined {
  if (NO_KEY.test(error)) return finding("keys-not-permitted", error);
  if (/^(?:NOPERM|READONLY)\b/.test(error)) return finding("token-read-only", error);
  if (/capacity quota exceeded|^OOM\b/i.test(error)) return finding("database-full", error);
  return undefined;
}
