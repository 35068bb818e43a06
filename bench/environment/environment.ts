import { type LocalRedis, startRedis } from "../../dev/redis.ts";
import type { BenchOptions } from "../options.ts";
import { createRedisMeter, type RedisMeter } from "./redis-meter.ts";
import { type Runtime, type RuntimeOptions, startRuntime } from "./runtime.ts";
import { createScratch } from "./scratch.ts";
import { type Backend, startBackend } from "./start-backend.ts";

/** The servers and meters that all subjects share. */
export interface Environment {
  readonly redis: LocalRedis;
  readonly backend: Backend;
  readonly redisMeter: RedisMeter;
  /**
   * Starts a Worker and passes it the addresses of the origin and of the REST server that has this
   * latency.
   */
  startWorker(options: RuntimeOptions, redisLatencyMs: number): Promise<Runtime>;
  /** Stops all servers and Workers. */
  stop(): Promise<void>;
}

/**
 * Starts the servers.
 *
 * @param latencies the latencies of Redis and of the origin, in milliseconds
 * @throws {Error} when PATH has no redis-server or a server does not start; then nothing keeps running
 */
export async function startEnvironment(
  latencies: Pick<BenchOptions, "redisLatenciesMs" | "originLatencyMs">,
): Promise<Environment> {
  const stops: (() => Promise<void> | void)[] = [];
  async function stop(): Promise<void> {
    // The parts stop in reverse order, so that no part stops before the parts that use it.
    for (const stopOne of stops.splice(0).reverse()) await stopOne();
  }
  try {
    // Without `requireServer`, `startRedis` may start a Redis written in JavaScript, which the bench
    // must not measure.
    const redis = await startRedis({ requireServer: true });
    stops.push(redis.stop);
    const scratch = await createScratch();
    stops.push(scratch.remove);
    const redisMeter = createRedisMeter(redis);
    stops.push(redisMeter.stop);
    const backend = await startBackend({ redis, ...latencies });
    stops.push(backend.stop);
    return {
      redis,
      backend,
      redisMeter,
      async startWorker(options, redisLatencyMs) {
        const vars = {
          ORIGIN_URL: backend.originUrl,
          ...(!options.durableObject && backend.restVars(redisLatencyMs)),
          ...options.vars,
        };
        const runtime = await startRuntime({ ...options, vars, storage: scratch.nextFolder() });
        stops.push(runtime.stop);
        return {
          ...runtime,
          async stop() {
            stops.splice(stops.indexOf(runtime.stop), 1);
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
