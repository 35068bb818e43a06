import { Redis } from "ioredis";

/** What this connection and that of the stand-in send of themselves. */
const OUR_OWN = new Set([
  "info",
  "config",
  "client",
  "hello",
  "ping",
  "select",
  "command",
  "flushall",
]);

/** A connection to Redis beside that of the stand-in. */
export type RedisWatch = {
  /** Commands that Redis has run since it was started: those inside of scripts, and the scripts. */
  commands(): Promise<number>;
  /** Forgets all counters, but no script. */
  empty(): Promise<void>;
  stop(): void;
};

/** Counts by Redis's own INFO commandstats. */
export function watchRedis(address: { host: string; port: number }): RedisWatch {
  const redis = new Redis({ ...address, maxRetriesPerRequest: 1 });
  return {
    commands: async () => sumOfCalls(await redis.info("commandstats")),
    empty: async () => void (await redis.flushall()),
    stop: () => redis.disconnect(),
  };
}

/** @param info lines such as `cmdstat_script|load:calls=3,usec=12,…` */
export function sumOfCalls(info: string): number {
  let sum = 0;
  for (const [, name = "", calls] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    const [command = ""] = name.split("|");
    if (!OUR_OWN.has(command)) sum += Number(calls);
  }
  return sum;
}
