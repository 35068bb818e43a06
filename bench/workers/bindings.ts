import { env } from "cloudflare:workers";

/** The bindings of all Workers. No Worker uses all of them. */
export interface Bindings {
  /** The server that requests are forwarded to. */
  readonly ORIGIN_URL: string;
  /** The limit of each client in a window. */
  readonly LIMIT: string;
  readonly WINDOW_SECONDS: string;
  /** "off" lets `@upstash/ratelimit` send each command alone. */
  readonly AUTO_PIPELINING?: string;
  readonly UPSTASH_REDIS_REST_URL: string;
  readonly UPSTASH_REDIS_REST_TOKEN: string;
  /** The configuration of Weir, as JSON. */
  readonly CONFIG: string;
  readonly RATE_LIMITER: RateLimit;
}

export const bindings = env as unknown as Bindings;

/** The request header whose value is the key, in all Workers. */
export const CLIENT_HEADER = "cf-connecting-ip";

/** The only path with a limit. Requests to other paths are only forwarded. */
export const LIMITED_PATH = "/limited";
