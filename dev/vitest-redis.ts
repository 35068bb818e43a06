import type { TestProject } from "vitest/node";
import type {} from "./provided-redis.ts";
import { startTestRedis } from "./test-redis.ts";
import { startUpstashRest } from "./upstash-rest.ts";

/**
 * A `globalSetup` function of Vitest. It starts one Redis and one REST server for the whole run.
 * Tests get them with `inject("redis")`. All tests share the Redis, so each test uses its own keys.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const redis = await startTestRedis().catch((error) => {
    // Vitest 5.0 does not print errors of a global setup.
    console.error(error.message);
    throw error;
  });
  const { kind, version, host, port } = redis;
  const rest = await startUpstashRest({ redis });
  console.log(`Redis for the tests: ${kind} ${version}`);
  project.provide("redis", { kind, host, port, restUrl: rest.url, restToken: rest.token });

  return async function teardown() {
    await rest.stop();
    await redis.stop();
  };
}
