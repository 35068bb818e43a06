import { spawnSync } from "node:child_process";
import { startJsRedis } from "../../../dev/js-redis.ts";
import { startRedis } from "../../../dev/redis.ts";

/** Whether this machine has a `redis-server`. Tests that need it are skipped if there is none. */
export const hasRedisServer = spawnSync("redis-server", ["--version"]).error === undefined;

/** Every kind of Redis that this machine can start. The same tests run on each of them. */
export const redises = [
  ...(hasRedisServer
    ? [{ name: "redis-server", start: () => startRedis({ requireServer: true }) }]
    : []),
  { name: "js-redis-server", start: startJsRedis },
];
