import { errors, Redis } from "@upstash/redis/cloudflare";

export { errors };

/** What Weir needs of Upstash's client: to run a script, by its digest or by its text. */
export type UpstashClient = Pick<Redis, "eval" | "evalsha">;

export interface UpstashClientOptions {
  /** The database's REST endpoint. */
  readonly url: string;
  readonly token: string;
  /** After this long a call is given up, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Creates Upstash's client so that it sends each call once and alone, and returns the reply unchanged.
 *
 * The bundle contains the whole class, with all of its commands: 10 KiB of gzip that Weir does not use. A
 * part of the class would be a client of our own, which neither its authors nor installed packages test.
 */
export function createUpstashClient({
  url,
  token,
  timeoutMs,
}: UpstashClientOptions): UpstashClient {
  return new Redis({
    url,
    token,
    // The client's own defaults: five retries over 4.3 s, batching across requests, base64,
    // guessing types.
    retry: { retries: 0 },
    enableAutoPipelining: false,
    enableTelemetry: false,
    readYourWrites: false,
    responseEncoding: false,
    automaticDeserialization: false,
    signal: () => AbortSignal.timeout(timeoutMs),
  });
}
