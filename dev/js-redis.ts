import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { createRedisCommandExecutor, RedisServerState, Resp2Server } from "js-redis-server/core";
import { type Listening, type ListenOptions, listen } from "./loopback.ts";

/** A Redis written in JavaScript, which runs in this process. */
export interface JsRedis extends Listening {
  readonly version: string;
}

/**
 * Starts js-redis-server. `version` is the version of the package.
 *
 * This function uses only parts of the package, because the package's own server listens on every
 * network interface and does not close while a client is connected.
 *
 * @throws if the port is in use
 */
export async function startJsRedis(options: ListenOptions = {}): Promise<JsRedis> {
  const state = new RedisServerState({ databaseCount: 16 });
  const { server } = new Resp2Server({ server: state, executor: createRedisCommandExecutor() });
  // Without this line, each reply to a pipeline waits 40 ms for the acknowledgement of the previous
  // reply.
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
  // The package does not export its package.json, so this code finds it from the entry file.
  const entry = createRequire(import.meta.url).resolve("js-redis-server");
  const json = await readFile(join(dirname(entry), "../package.json"), "utf8");
  return (JSON.parse(json) as { version: string }).version;
}
