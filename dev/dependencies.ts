import { startDemoOrigin } from "./demo-origin.ts";
import { startRedis } from "./redis.ts";
import { startUpstashRest } from "./upstash-rest.ts";

/** A service that the Worker needs. */
export interface Dependency {
  /** The Worker's vars that give the address of the service. */
  readonly vars: Record<string, string>;
  /** A description of the service, which is printed at the start. */
  readonly description: string;
  stop(): Promise<void>;
}

/** Returns the origin at a URL. If there is no URL, starts the demo origin. */
export async function startOrigin(url?: string): Promise<Dependency> {
  if (url !== undefined) {
    return { vars: { ORIGIN_URL: url }, description: url, stop: async () => {} };
  }
  const demo = await startDemoOrigin();
  return {
    vars: { ORIGIN_URL: demo.url },
    description: `the demo origin, ${demo.url}`,
    stop: demo.stop,
  };
}

/** Starts the same kind of store as in production: Redis behind a REST server like Upstash's. */
export async function startRedisStore(): Promise<Dependency> {
  const redis = await startRedis();
  const rest = await startUpstashRest({ redis });
  return {
    vars: { UPSTASH_REDIS_REST_URL: rest.url, UPSTASH_REDIS_REST_TOKEN: rest.token },
    description: `${redis.kind} ${redis.version} at ${redis.host}:${redis.port}, over REST at ${rest.url}`,
    async stop() {
      await rest.stop();
      await redis.stop();
    },
  };
}

/** Returns the store that runs inside the Worker's runtime. It uses Durable Objects. */
export function createEmbeddedStore(): Dependency {
  return {
    // The Worker treats an empty var as missing. Without these vars, credentials in `.dev.vars` or `.env` would make
    // this run count in the database of a deployment.
    vars: { UPSTASH_REDIS_REST_URL: "", UPSTASH_REDIS_REST_TOKEN: "" },
    description: "a Durable Object on this machine (no Redis)",
    stop: async () => {},
  };
}
