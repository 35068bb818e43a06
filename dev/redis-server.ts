import { tmpdir } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import getPort from "get-port";
import { Redis } from "ioredis";
import { type OwnedChild, startChild } from "./child.ts";

const HOST = "127.0.0.1";
const START_TIMEOUT_MS = 10_000;
const PORT_ATTEMPTS = 5;

/** A `redis-server` of this machine, started by this process. */
export type RedisServer = {
  version: string;
  host: string;
  port: number;
  pid: number;
  stop(): Promise<void>;
};

/**
 * Starts the `redis-server` of PATH on a free loopback port, keeping nothing on disk, and waits
 * until it answers. Resolves to `undefined` when PATH has none.
 *
 * @throws when it does not start, with what it printed.
 */
export async function startRedisServer(): Promise<RedisServer | undefined> {
  for (let attempt = 1; ; attempt++) {
    const port = await getPort({ host: HOST });
    const child = await spawnRedis(port);
    if (child === undefined) return undefined;

    const output = collectOutput(child);
    const version = await waitUntilReady(child, port);
    if (version !== undefined) {
      return { version, host: HOST, port, pid: child.pid, stop: child.stop };
    }

    await child.stop();
    // Between asking for a free port and binding it, another process can take it.
    const lostPort = output().includes("Address already in use");
    if (!lostPort || attempt === PORT_ATTEMPTS) {
      throw new Error(`redis-server did not start on ${HOST}:${port}. It printed:\n${output()}`);
    }
  }
}

async function spawnRedis(port: number): Promise<OwnedChild | undefined> {
  const args = ["--port", `${port}`, "--bind", HOST, "--save", "", "--appendonly", "no"];
  try {
    return await startChild("redis-server", args, {
      cwd: tmpdir(),
      stdio: ["ignore", "pipe", "pipe"],
    });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/** Keeps reading, so that the pipe never fills up; remembers only the end of what was printed. */
function collectOutput({ process }: OwnedChild): () => string {
  let tail = "";
  for (const stream of [process.stdout, process.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      tail = (tail + text).slice(-4096);
    });
  }
  return () => tail.trim();
}

/** The version of our Redis once it answers, or `undefined` when it ended or was too slow. */
async function waitUntilReady(child: OwnedChild, port: number): Promise<string | undefined> {
  const client = new Redis({
    host: HOST,
    port,
    retryStrategy: () => 20,
    maxRetriesPerRequest: null,
  });
  // Refused connections are expected until it listens; the retry above handles them.
  client.on("error", () => {});
  const info = client.info("server").catch(() => "");
  try {
    const answer = await Promise.race([
      info,
      child.exited,
      delay(START_TIMEOUT_MS, undefined, { ref: false }),
    ]);
    if (typeof answer !== "string") return undefined;
    // Whoever won the port may be a Redis too: only ours has the pid of our child.
    if (/^process_id:(\d+)/m.exec(answer)?.[1] !== `${child.pid}`) return undefined;
    return /^redis_version:(\S+)/m.exec(answer)?.[1];
  } finally {
    client.disconnect();
  }
}
