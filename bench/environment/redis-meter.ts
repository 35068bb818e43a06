import { Redis } from "ioredis";

/** Commands that this connection and the REST server's connection send on their own behalf. */
const OWN_COMMANDS = new Set([
  "info",
  "config",
  "client",
  "hello",
  "ping",
  "select",
  "command",
  "flushall",
]);

/** A second connection to Redis, next to the REST server's. */
export interface RedisMeter {
  /** Commands that Redis has run since its start: scripts, and the commands inside scripts. */
  commands(): Promise<number>;
  /** Deletes all counters, but no script. */
  deleteCounters(): Promise<void>;
  stop(): void;
}

/** Counts commands with Redis's `INFO commandstats`. */
export function createRedisMeter(address: { host: string; port: number }): RedisMeter {
  const redis = new Redis({ ...address, maxRetriesPerRequest: 1 });
  return {
    commands: async () => sumOfCalls(await redis.info("commandstats")),
    deleteCounters: async () => void (await redis.flushall()),
    stop: () => redis.disconnect(),
  };
}

/** @param info lines such as `cmdstat_script|load:calls=3,usec=12,…` */
export function sumOfCalls(info: string): number {
  let sum = 0;
  for (const [, name = "", calls] of info.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)) {
    const [command = ""] = name.split("|");
    if (!OWN_COMMANDS.has(command)) sum += Number(calls);
  }
  return sum;
}
