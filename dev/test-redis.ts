import { startJsRedis } from "./js-redis.ts";
import { type LocalRedis, startRedis } from "./redis.ts";

const VARIABLE = "WEIR_TEST_REDIS";

/**
 * Starts the Redis for tests: `redis-server`, or js-redis-server on a machine without it. The
 * environment variable `WEIR_TEST_REDIS` can require one of these servers by name. Setting the
 * variable `CI` does not require `redis-server`, because many machines that set `CI` have no Redis.
 *
 * @throws if the required Redis is not available
 */
export async function startTestRedis(): Promise<LocalRedis> {
  const required = process.env[VARIABLE];
  switch (required) {
    case undefined:
    case "":
      return await startRedis();
    case "redis-server":
      return await startRedis({ requireServer: true });
    case "js-redis-server":
      return { kind: "js-redis-server", ...(await startJsRedis()) };
    default:
      throw new Error(
        `${VARIABLE} is "${required}". Allowed: redis-server, js-redis-server, or no value, which allows both.`,
      );
  }
}
