import { startJsRedis } from "./js-redis.ts";
import { startRedisServer } from "./redis-server.ts";

/** A Redis on loopback for development and tests. It starts empty and stores nothing on disk. */
export interface LocalRedis {
  readonly kind: "redis-server" | "js-redis-server";
  readonly version: string;
  readonly host: string;
  readonly port: number;
  /** The process of `redis-server`; undefined for js-redis-server, which runs in this process. */
  readonly pid?: number;
  /** Ends Redis and waits until it has ended. Redis also ends when this process ends. */
  stop(): Promise<void>;
}

/**
 * Starts the `redis-server` in PATH. If there is none, starts js-redis-server, which is written in
 * JavaScript and behaves much like Redis.
 *
 * @param options.requireServer whether to throw instead of using js-redis-server (default `false`)
 * @throws if `redis-server` does not start, or if it is required but missing
 */
export async function startRedis({ requireServer = false } = {}): Promise<LocalRedis> {
  const server = await startRedisServer();
  if (server !== undefined) return { kind: "redis-server", ...server };
  if (requireServer) {
    throw new Error(
      "redis-server is required, but PATH has none. Install it: " +
        "`apt-get install redis-server` (Debian, Ubuntu) or `brew install redis` (macOS).",
    );
  }
  return { kind: "js-redis-server", ...(await startJsRedis()) };
}
