import { createHash } from "node:crypto";
import type { KeyPart } from "../../src/config/key-expression.ts";
import { mayBeCredential } from "../../src/config/tier-names.ts";
import { ownText } from "../logs/text-cache.ts";

/** Header fields that every browser sends, and that are no credentials. A referer may have them in its path or query. */
const HARMLESS_FIELDS = /^(?:user-agent|origin|host|dnt|accept(?:-[a-z]+)*|sec-[a-z-]+)$/;
/** The maximum length of a value in a report, in characters. */
const MAX_LENGTH = 80;
/** The number of characters of a hash. Two values with the same 60 bits hardly ever occur in a log. */
const HASH_LENGTH = 10;

/**
 * Returns a value of a key as reports show it. Values that may be credentials are cut to a few characters
 * and a hash, and long values to their start and a hash.
 */
export function clientText(part: KeyPart, value: string): string {
  if (isSecret(part)) return shortened(value, Math.min(4, Math.floor(value.length / 4)));
  return value.length > MAX_LENGTH ? shortened(value, MAX_LENGTH / 2) : ownText(value);
}

function isSecret(part: KeyPart): boolean {
  if (part.kind === "param" || !mayBeCredential(part)) return false;
  return !(part.kind === "header" && HARMLESS_FIELDS.test(part.name));
}

function shortened(value: string, length: number): string {
  const hash = createHash("sha256").update(value).digest("base64url").slice(0, HASH_LENGTH);
  return `${value.slice(0, length)}…${hash}`;
}
