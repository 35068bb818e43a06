import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createRedisCommandExecutor, RedisServerState, Resp2Server } from "js-redis-server/core";
import { type Listening, type ListenOptions, listen } from "./loopback.ts";

/** A Redis written in JavaScript that runs inside this process. */
export type JsRedis = Listening & { version: string };

/**
 * Starts js-redis-server. `version` is that of the package.
 *
 * It is put together from the package's parts because what the package starts by itself listens
 * on every network interface, and does not close while a client is connected.
 *
 * @throws when the port is taken.
 */
export async function startJsRedis(options: ListenOptions = {}): Promise<JsRedis> {
  const state = new RedisServerState({ databaseCount: 16 });
  const { server } = new Resp2Server({ server: state, executor: createRedisCommandExecutor() });
  // Otherwise the replies to a pipeline wait for each other's acknowledgement, 40 ms each.
  server.on("connection", (socket) => socket.setNoDelay());
  const [version, listening] = await Promise.all([packageVersion(), listen(server, options)]);
  return {
    ...listening,
    version,
    async stop() {
      await listening.stop();
      state.close();
    },
  };
}

async function packageVersion(): Promise<string> {
  // The package does not export its package.json, so it is found beside its entry file.
  const entry = createRequire(import.meta.url).resolve("js-redis-server");
  const json = await readFile(join(dirname(entry), "../package.json"), "utf8");
  return (JSON.parse(json) as { version: string }).version;
}
