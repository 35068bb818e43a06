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
 * Upstash's own client, which sends each call once, alone, and gives its reply as it is.
 *
 * What wrangler bundles here is small-redis.ts: its `Redis` has no other methods than these two,
 * and no other behaviour than what these options ask for.
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
