import { startJsRedis } from "./js-redis.ts";
import { type LocalRedis, startRedis } from "./redis.ts";

const VARIABLE = "WEIR_TEST_REDIS";

/**
 * Starts the Redis that tests run on: `redis-server`, or js-redis-server on a machine without it.
 * The environment variable `WEIR_TEST_REDIS` demands one of the two by its name. (Not `CI`, which many
 * machines set that have no Redis.)
 *
 * @throws when the one that is demanded cannot be had.
 */
export async function startTestRedis(): Promise<LocalRedis> {
  const demanded = process.env[VARIABLE];
  switch (demanded) {
    case undefined:
    case "":
      return await startRedis();
    case "redis-server":
      return await startRedis({ requireServer: true });
    case "js-redis-server":
      return { kind: "js-redis-server", ...(await startJsRedis()) };
    default:
      throw new Error(
        `${VARIABLE} is "${demanded}". Allowed: redis-server, js-redis-server, or nothing for either.`,
      );
  }
}
