import { type FaultyRest, startFaultyRest } from "../../dev/faulty-rest.ts";
import { type OwnRedis, startOwnRedis } from "../../dev/own-redis.ts";
import { startOrigin } from "../node/support/origin.ts";
import { OBJECT_FAULTS, type ObjectEnvironment } from "./object-faults.ts";
import { REDIS_FAULTS, type RedisEnvironment } from "./redis-faults.ts";
import { REST_FAULTS, type RestEnvironment } from "./rest-faults.ts";
import type { Fault } from "./support/fault.ts";
import { type FaultyWorker, startFaultyWorker } from "./support/faulty-worker.ts";
import { CONFIG } from "./support/rules.ts";
import { type Observed, observe } from "./support/scenario.ts";

/**
 * The faults of one kind of store, and a method that causes one of them and observes its effects.
 */
export interface Chaos {
  readonly faults: readonly Fault<never>[];
  /**
   * Causes the fault at this index.
   *
   * @returns the effects that clients can observe
   */
  watch(index: number): Promise<Observed>;
  /** Returns the header fields of all requests that reached the target of redirects. */
  elsewhere(): readonly Record<string, unknown>[];
  stop(): Promise<void>;
}

/** Starts a Worker for the faults of the REST server and of the connection to it. Redis works. */
export async function restChaos(redis: { host: string; port: number }): Promise<Chaos> {
  const rest = await startFaultyRest(redis);
  const elsewhere = await startOrigin();
  const environment: RestEnvironment = { rest, elsewhere: elsewhere.url };
  const chaos = await over(rest, REST_FAULTS, environment, [elsewhere.stop, rest.stop]);
  return { ...chaos, elsewhere: () => elsewhere.received.map(({ headers }) => headers) };
}

/**
 * Starts a Worker for the faults of Redis itself. @returns undefined if PATH has no redis-server
 */
export async function redisChaos(): Promise<Chaos | undefined> {
  const redis: OwnRedis | undefined = await startOwnRedis();
  if (!redis) return undefined;
  const rest = await startFaultyRest(redis);
  const environment: RedisEnvironment = { rest, redis };
  // Some faults concern the clock of Redis.
  const config = { ...CONFIG, clock: "store" } as const;
  return await over(rest, REDIS_FAULTS, environment, [rest.stop, redis.stop], config);
}

/** Starts a Worker for the faults of Durable Objects. */
export async function objectChaos(): Promise<Chaos> {
  return await chaosOf(OBJECT_FAULTS, {}, [], (worker): ObjectEnvironment => worker);
}

function over<Environment>(
  rest: FaultyRest,
  faults: readonly Fault<Environment>[],
  environment: Environment,
  ends: (() => Promise<void>)[],
  config = CONFIG,
): Promise<Chaos> {
  const vars = { UPSTASH_REDIS_REST_URL: rest.url, UPSTASH_REDIS_REST_TOKEN: rest.token };
  return chaosOf(faults, vars, ends, () => environment, config);
}

/** Starts the Worker and its origin. All faults come one after the other in one isolate. */
async function chaosOf<Environment>(
  faults: readonly Fault<Environment>[],
  vars: Record<string, string>,
  ends: (() => Promise<void>)[],
  environmentOf: (worker: FaultyWorker) => Environment,
  config = CONFIG,
): Promise<Chaos> {
  const origin = await startOrigin();
  const worker = await startFaultyWorker(config, { ORIGIN_URL: origin.url, ...vars });
  const setting = { environment: environmentOf(worker), worker };
  return {
    faults: faults as readonly Fault<never>[],
    watch: (index) => observe(setting, faults[index] as Fault<Environment>),
    elsewhere: () => [],
    async stop() {
      await worker.stop();
      await origin.stop();
      for (const end of ends) await end();
    },
  };
}
