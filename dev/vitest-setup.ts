import { statfsSync } from "node:fs";
import type { TestProject } from "vitest/node";
import type {} from "./provided.ts";
import { startTestRedis } from "./test-redis.ts";
import { startUpstashRest } from "./upstash-rest.ts";

/** A folder in memory, which Linux has. */
const MEMORY = "/dev/shm";
const MEMORY_BYTES = 2 ** 30;

/** The seed of a run that is not long, so that each change is tested with the same cases. */
const SEED = 20_260_101;

/**
 * A `globalSetup` function of Vitest. It starts one Redis and one REST server for the whole run.
 * Tests get them with `inject("redis")`. All tests share the Redis, so each test uses its own keys.
 * WEIR_TEST_LONG=1 runs all cases of the property tests, with another seed each time.
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

  const isLong = process.env.WEIR_TEST_LONG === "1";
  const drawn = isLong ? Math.floor(Math.random() * 2 ** 31) : SEED;
  const seed = Number(process.env.WEIR_TEST_SEED ?? drawn);
  console.log(`Property tests: ${isLong ? "all" : "a tenth of the"} cases, WEIR_TEST_SEED=${seed}`);
  project.provide("propertyTests", { isLong, seed });

  // A Durable Object stores each change on the disk before it answers.
  if (freeBytes(MEMORY) > MEMORY_BYTES) process.env.TMPDIR = MEMORY;

  return async function teardown() {
    await rest.stop();
    await redis.stop();
  };
}

function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return 0;
  }
}
