import { startJsRedis } from "./js-redis.ts";
import { startRedisServer } from "./redis-server.ts";

/** A Redis on loopback for development and tests: empty when it starts, gone when it stops. */
export type LocalRedis = {
  kind: "redis-server" | "js-redis-server";
  version: string;
  host: string;
  port: number;
  /** The process of a `redis-server`; js-redis-server runs inside this one. */
  pid?: number;
  /** Ends it and waits until it has ended. It never outlives this process. */
  stop(): Promise<void>;
};

/**
 * Starts the `redis-server` of PATH or, so that a machine without one can still develop and test,
 * js-redis-server, which is written in JavaScript and close to Redis but not Redis itself.
 *
 * @param options.requireServer refuse the stand-in (default `false`).
 * @throws when `redis-server` is required and absent, or does not start.
 */
export async function startRedis({ requireServer = false } = {}): Promise<LocalRedis> {
  const server = await startRedisServer();
  if (server !== undefined) return { kind: "redis-server", ...server };
  if (requireServer) {
    throw new Error(
      "redis-server is required here and PATH has none. Install it: " +
        "`apt-get install redis-server` (Debian, Ubuntu) or `brew install redis` (macOS).",
    );
  }
  return { kind: "js-redis-server", ...(await startJsRedis()) };
}
