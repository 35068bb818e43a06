import type { Config } from "../../src/config/schema.ts";
import type { RestClient } from "./rest.ts";

/** The values that all checks of a database use. */
export interface Examination {
  readonly rest: RestClient;
  readonly url: string;
  readonly token: string;
  readonly config: Pick<Config, "clock" | "prefix" | "timeoutMs">;
  /**
   * The first part of all keys that the doctor writes. It begins with Weir's prefix, because a token
   * may be limited to this prefix. It is random, so no other program uses it. No key of a rule begins
   * with it: in such a key, a window, such as `1m`, comes directly after the rule's name.
   */
  readonly ownPrefix: string;
  /** All keys that the doctor may have written. A check adds a key before it writes the key. */
  readonly writtenKeys: Set<string>;
  /** Aborted when the run must end. */
  readonly stop: AbortSignal;
}

/**
 * The longest time that a key of the doctor may exist if it cannot be removed, in milliseconds. All
 * windows and bans of the vectors are so short that their keys expire earlier.
 */
export const MAX_KEY_AGE_MS = 15 * 60_000;

/** Returns a new key, and notes it for the removal. */
export function newKey({ ownPrefix, writtenKeys }: Examination, name: string): string {
  const key = `${ownPrefix}:${name}`;
  writtenKeys.add(key);
  return key;
}
