import { env } from "cloudflare:workers";

/** What the bench binds to its Workers; each has those that it needs. */
export type Bindings = {
  /** What to stand in front of. */
  ORIGIN_URL: string;
  /** Requests that a client has in a window. */
  LIMIT: string;
  WINDOW_SECONDS: string;
  UPSTASH_REDIS_REST_URL: string;
  UPSTASH_REDIS_REST_TOKEN: string;
  /** What a weir.config.ts would hold, as JSON. */
  CONFIG: string;
  RATE_LIMITER: RateLimit;
};

export const bindings = env as unknown as Bindings;

/** Who is counted, in all Workers alike. */
export const CLIENT_HEADER = "cf-connecting-ip";

/** The only path that is limited; all others are just forwarded. */
export const LIMITED_PATH = "/limited";
