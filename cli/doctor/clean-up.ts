import { type Examination, MAX_KEY_AGE_MS } from "./examination.ts";
import { type Finding, finding, plural } from "./finding.ts";
import { createRestClient } from "./rest-client.ts";

const KEYS_PER_CALL = 100;
/** The time for the removal, in milliseconds. It also runs after Ctrl-C, so it must be short. */
const CLEAN_UP_MS = 3000;

/**
 * Removes all keys that the doctor may have written, and checks that they are gone. It never
 * throws. It uses its own deadline, because it runs even if the rest of the run was stopped.
 */
export async function cleanUp({ url, token, ...run }: Examination): Promise<Finding> {
  const { writtenKeys, ownPrefix } = run;
  const stop = AbortSignal.timeout(CLEAN_UP_MS);
  const rest = createRestClient({ url, token, callTimeoutMs: CLEAN_UP_MS, stop });
  const keys = [...writtenKeys];
  let left = keys.length;
  try {
    for (let at = 0; at < keys.length; at += KEYS_PER_CALL) {
      const page = keys.slice(at, at + KEYS_PER_CALL);
      await rest.run(["DEL", ...page]);
      const answer = await rest.run(["EXISTS", ...page]);
      if ("reply" in answer && answer.reply === 0) left -= page.length;
    }
  } catch {
    // The keys that are left are reported below.
  }
  if (left === 0) return finding("cleaned-up", `no key is left under ${ownPrefix}:`);
  const minutes = MAX_KEY_AGE_MS / 60_000;
  return finding(
    "keys-left",
    `up to ${plural(left, "key")} under ${ownPrefix}: could not be removed; they expire within ${minutes} minutes`,
  );
}
