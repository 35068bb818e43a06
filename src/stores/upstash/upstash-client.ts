import { errors, Redis } from "@upstash/redis/cloudflare";

export { errors };

/** The two commands of Upstash's client that Weir uses: run a script by its digest, or by its text. */
export type UpstashClient = Pick<Redis, "eval" | "evalsha">;

export interface UpstashClientOptions {
  /** The database's REST endpoint. */
  readonly url: string;
  readonly token: string;
  /** A call is aborted after this long, in milliseconds. */
  readonly timeoutMs: number;
}

/**
 * Creates Upstash's client so that it sends each call once and alone, and returns the reply unchanged.
 *
 * The bundle contains the whole class with all of its commands: 17 KiB of gzip. The package has no
 * smaller entry, and bundlers do not remove methods of a class. A part of the class would be a client
 * of our own, which neither its authors nor installed packages test.
 */
export function createUpstashClient({
  url,
  token,
  timeoutMs,
}: UpstashClientOptions): UpstashClient {
  return new Redis({
    url,
    token,
    // The client's defaults: five retries over 4.3 s, batches across requests, base64 replies, and
    // a guess at the type of each value.
    retry: { retries: 0 },
    enableAutoPipelining: false,
    enableTelemetry: false,
    readYourWrites: false,
    responseEncoding: false,
    automaticDeserialization: false,
    signal: () => AbortSignal.timeout(timeoutMs),
  });
}
