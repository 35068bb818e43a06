import { errors, type UpstashClient } from "./upstash-client.ts";

/**
 * A Lua script in Upstash Redis. It is called by its digest (EVALSHA). Redis does nothing and
 * answers NOSCRIPT if it does not have the script yet. Then the script is sent as text (EVAL).
 * Other failures are not retried, because a failed call may have charged counters.
 */
export class UpstashScript {
  readonly #client: UpstashClient;
  readonly #text: string;
  /** SHA-1 of the text, in hex. The first call computes it, because hashing is asynchronous. */
  #digest: string | undefined;

  constructor(client: UpstashClient, text: string) {
    this.#client = client;
    this.#text = text;
  }

  /** @returns the reply, unchecked */
  async run(keys: string[], args: number[]): Promise<unknown> {
    this.#digest ??= await sha1(this.#text);
    try {
      return await this.#client.evalsha(this.#digest, keys, args);
    } catch (error) {
      if (!isNoScript(error)) throw error;
      return await this.#client.eval(this.#text, keys, args);
    }
  }
}

/** Only the start of the message comes from Redis, because the client appends the command. */
function isNoScript(error: unknown): boolean {
  return error instanceof errors.UpstashError && error.message.startsWith("NOSCRIPT");
}

async function sha1(text: string): Promise<string> {
  const digest = await crypto.subtle.digest("SHA-1", new TextEncoder().encode(text));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
