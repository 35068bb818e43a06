import { spawnSync } from "node:child_process";
import { startJsRedis } from "../../../dev/js-redis.ts";
import { startRedis } from "../../../dev/redis.ts";

/** Whether this machine has a `redis-server`. Tests that need one are skipped without it. */
export const hasRedisServer = spawnSync("redis-server", ["--version"]).error === undefined;

/** Every Redis of this machine, to run the same tests over each. */
export const redises = [
  ...(hasRedisServer
    ? [{ name: "redis-server", start: () => startRedis({ requireServer: true }) }]
    : []),
  { name: "js-redis-server", start: startJsRedis },
];
