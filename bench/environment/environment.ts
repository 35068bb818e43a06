import type { LocalRedis } from "../../dev/redis.ts";
import { startRedis } from "../../dev/redis.ts";
import { type RedisWatch, watchRedis } from "./redis-meter.ts";
import { type Runtime, type RuntimeOptions, startRuntime } from "./runtime.ts";
import { makeScratch } from "./scratch.ts";
import { type Backend, startBackend } from "./start-backend.ts";

/** What all subjects run between: a Redis, the servers behind them, and what counts there. */
export type Stage = {
  redis: LocalRedis;
  backend: Backend;
  watch: RedisWatch;
  /** Starts a Worker that knows the origin, and the REST server at a distance. */
  start(options: RuntimeOptions, distanceMs: number): Promise<Runtime>;
  /** Ends all that was started, Workers included. */
  stop(): Promise<void>;
};

/** @throws when there is no redis-server, or something does not start; then nothing is left over. */
export async function openStage(distances: readonly number[]): Promise<Stage> {
  const started: (() => Promise<void> | void)[] = [];
  async function stop(): Promise<void> {
    // The last one first: nothing is taken away from under what still uses it.
    for (const end of started.splice(0).reverse()) await end();
  }
  try {
    // A stand-in for Redis would be measured as if it were Redis.
    const redis = await startRedis({ requireServer: true });
    started.push(redis.stop);
    const scratch = await makeScratch();
    started.push(scratch.remove);
    const watch = watchRedis(redis);
    started.push(watch.stop);
    const backend = await startBackend({ redis, distances });
    started.push(backend.stop);
    return {
      redis,
      backend,
      watch,
      async start(options, distanceMs) {
        const vars = {
          ORIGIN_URL: backend.originUrl,
          ...(!options.durableObject && backend.restVars(distanceMs)),
          ...options.vars,
        };
        const runtime = await startRuntime({ ...options, vars, storage: scratch.folder() });
        started.push(runtime.stop);
        return {
          ...runtime,
          async stop() {
            started.splice(started.indexOf(runtime.stop), 1);
            await runtime.stop();
          },
        };
      },
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
