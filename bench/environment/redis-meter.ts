import { Redis } from "ioredis";

/** Commands of the connections themselves, which are not counted. */
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

/** A connection to Redis, besides the REST server's, that counts commands. */
export interface RedisMeter {
  /**
   * Returns how many commands of the limiters Redis has run since its start. A script counts as one
   * command, and so does each command inside a script.
   */
  commands(): Promise<number>;
  /** Deletes all counters, and keeps the scripts. */
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
