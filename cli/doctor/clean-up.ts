import { type Examination, MAX_KEY_AGE_MS } from "./examination.ts";
import { type Finding, finding, plural } from "./finding.ts";
import { CallFailure } from "./rest-answer.ts";
import { type Command, createRestClient, type RestClient } from "./rest-client.ts";

const KEYS_PER_CALL = 100;
/** The shortest deadline of a call that removes keys, in milliseconds. */
const MIN_CALL_MS = 3000;

/** The reason why keys may be left. */
interface Obstacle {
  readonly reason: string;
  readonly left: number;
  /** Whether the database did not answer, so that more calls are useless. */
  readonly isSilent: boolean;
}

/**
 * Removes all keys that the doctor may have written, and checks that they are gone. It never
 * throws. It has its own client, because it runs even if the rest of the run was stopped.
 *
 * A call without an answer may write its key after the removal. So the function waits for such calls
 * as long as for any other call, and then removes the keys again.
 */
export async function cleanUp(examination: Examination): Promise<Finding> {
  const { url, token, rest, ownPrefix } = examination;
  const callTimeoutMs = Math.max(MIN_CALL_MS, rest.callTimeoutMs);
  const stop = new AbortController().signal;
  const cleaner = createRestClient({ url, token, callTimeoutMs, stop });
  const keys = [...examination.writtenKeys];
  const isOpen = rest.writes.count > 0;
  let obstacle = await remove(cleaner, keys);
  const unconfirmed = await rest.writes.settle(obstacle?.isSilent ? 0 : callTimeoutMs);
  if (isOpen && !obstacle?.isSilent) obstacle = await remove(cleaner, keys);
  const expiry = `under "${ownPrefix}"; they expire within ${MAX_KEY_AGE_MS / 60_000} minutes`;
  if (obstacle) {
    return finding(
      "keys-left",
      `${obstacle.reason}, so up to ${plural(obstacle.left, "key")} may be left ${expiry}`,
    );
  }
  if (unconfirmed.length > 0) {
    const names = [...new Set(unconfirmed)].join(", ");
    const calls = `${plural(unconfirmed.length, "call")} (${names})`;
    return finding(
      "keys-left",
      `the database did not confirm ${calls}, which may still write keys ${expiry}`,
    );
  }
  return finding("cleaned-up", `no key is left under "${ownPrefix}"`);
}

/** @returns undefined if the database has confirmed that all keys are gone */
async function remove(rest: RestClient, keys: readonly string[]): Promise<Obstacle | undefined> {
  let [left, name, existing] = [keys.length, "DEL", 0];
  try {
    for (let at = 0; at < keys.length; at += KEYS_PER_CALL) {
      const page = keys.slice(at, at + KEYS_PER_CALL) as [string, ...string[]];
      const call = (command: string) => {
        name = command;
        return rest.run([command, ...page] as Command);
      };
      const removed = await call("DEL");
      if ("error" in removed) {
        return { reason: `DEL was refused (${removed.error})`, left, isSilent: false };
      }
      const found = await call("EXISTS");
      // If EXISTS is refused, the answer to DEL is the confirmation.
      if ("reply" in found && found.reply !== 0) {
        existing += typeof found.reply === "number" ? found.reply : page.length;
      }
      left -= page.length;
    }
  } catch (error) {
    const reason = error instanceof CallFailure ? error.message : "the call failed";
    return { reason: `${name} was not confirmed (${reason})`, left, isSilent: true };
  }
  if (existing === 0) return undefined;
  return { reason: "EXISTS found keys after DEL", left: existing, isSilent: false };
}
