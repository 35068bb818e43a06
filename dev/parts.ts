import { startDemoOrigin } from "./demo-origin.ts";
import { startRedis } from "./redis.ts";
import { startUpstashRest } from "./upstash-rest.ts";

/** Something that the Worker needs beside it. */
export type Part = {
  /** What tells the Worker of it. */
  vars: Record<string, string>;
  /** What it is, to print. */
  description: string;
  stop(): Promise<void>;
};

/** The origin that the Worker stands in front of: the given one, or else the demo origin. */
export async function startOrigin(url?: string): Promise<Part> {
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

/** Production's store: Redis behind a REST server that speaks as Upstash's does. */
export async function startRedisStore(): Promise<Part> {
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

/** The store inside the Worker's own runtime, which needs nothing beside it. */
export function embeddedStore(): Part {
  return {
    // Empty is unset to the Worker. Left out, the credentials of a deployment that stand in
    // `.dev.vars` or `.env` would make this run count in that deployment's database.
    vars: { UPSTASH_REDIS_REST_URL: "", UPSTASH_REDIS_REST_TOKEN: "" },
    description: "a Durable Object on this machine (no Redis)",
    stop: async () => {},
  };
}
