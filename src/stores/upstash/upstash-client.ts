import { errors, Redis } from "@upstash/redis/cloudflare";
import { CHECKS_PER_DEADLINE, Deadline } from "../deadline.ts";

export { errors };

/**
 * The methods of Upstash's client that Weir uses. They run a script by its digest, or by its text.
 */
export type UpstashClient = Pick<Redis, "eval" | "evalsha">;

export interface UpstashClientOptions {
  /** The database's REST endpoint. */
  readonly url: string;
  readonly token: string;
  /** The deadline of a decision, in milliseconds. A call is aborted some time after it. */
  readonly timeoutMs: number;
}

/**
 * Creates Upstash's client. It sends each call in its own HTTP request, never retries it, and
 * returns the reply unchanged.
 *
 * The bundle contains the whole class with all of its commands, which takes 17 KiB after gzip. The
 * package has no smaller client, and bundlers do not remove unused methods of a class. A reduced
 * copy of the class would be a client of our own, which neither Upstash nor other projects test.
 */
export function createUpstashClient({
  url,
  token,
  timeoutMs,
}: UpstashClientOptions): UpstashClient {
  return new Redis({
    url,
    token,
    // These options turn off the client's defaults, such as five retries over 4.3 s, batches of
    // calls from several requests, base64 replies, and guesses at the type of each value.
    retry: { retries: 0 },
    enableAutoPipelining: false,
    enableTelemetry: false,
    readYourWrites: false,
    responseEncoding: false,
    automaticDeserialization: false,
    signal: () => abortAfter(CHECKS_PER_DEADLINE * timeoutMs),
  });
}

/**
 * Frees the connection of a call that hangs. Decisions have a deadline of their own. In an isolate
 * that is busy, this deadline can pass much later, so the call is aborted later still.
 */
function abortAfter(ms: number): AbortSignal {
  const controller = new AbortController();
  new Deadline(ms, () => controller.abort(new DOMException("no answer", "TimeoutError")));
  return controller.signal;
}
