import { tmpdir } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import getPort from "get-port";
import { Redis } from "ioredis";
import { type OwnedChild, startChild } from "./child.ts";

const HOST = "127.0.0.1";
const START_TIMEOUT_MS = 10_000;
const PORT_ATTEMPTS = 5;

/** A `redis-server` that this process has started. */
export interface RedisServer {
  readonly version: string;
  readonly host: string;
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

/**
 * Starts the `redis-server` in PATH on a free loopback port, without persistence, and waits until
 * it answers.
 *
 * @param settings more arguments of `redis-server`, such as `--maxmemory-policy allkeys-lru`
 * @returns undefined if PATH has no `redis-server`
 * @throws if `redis-server` does not start. The message contains its output
 */
export async function startRedisServer(
  settings: readonly string[] = [],
): Promise<RedisServer | undefined> {
  for (let attempt = 1; ; attempt++) {
    const port = await getPort({ host: HOST });
    const child = await spawnRedis(port, settings);
    if (child === undefined) return undefined;

    const output = collectOutput(child);
    const version = await waitUntilReady(child, port);
    if (version !== undefined) {
      return { version, host: HOST, port, pid: child.pid, stop: child.stop };
    }

    await child.stop();
    // Another process can take the port before redis-server binds it.
    const isPortTaken = output().includes("Address already in use");
    if (!isPortTaken || attempt === PORT_ATTEMPTS) {
      throw new Error(`redis-server did not start on ${HOST}:${port}. It printed:\n${output()}`);
    }
  }
}

async function spawnRedis(
  port: number,
  settings: readonly string[],
): Promise<OwnedChild | undefined> {
  const base = ["--port", `${port}`, "--bind", HOST, "--save", "", "--appendonly", "no"];
  const args = [...base, ...settings];
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

/** Reads all output, so that the pipe never fills up. Keeps only the end of the output. */
function collectOutput({ process }: OwnedChild): () => string {
  let tail = "";
  for (const stream of [process.stdout, process.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      tail = (tail + text).slice(-4096);
    });
  }
  return () => tail.trim();
}

/**
 * Waits until the Redis that runs in a child process answers.
 *
 * @returns the version of Redis; undefined if the process has ended or does not answer in time
 */
async function waitUntilReady(child: OwnedChild, port: number): Promise<string | undefined> {
  const client = new Redis({
    host: HOST,
    port,
    retryStrategy: () => 20,
    maxRetriesPerRequest: null,
  });
  // Connections are refused until Redis listens, so the client retries.
  client.on("error", () => {});
  const info = client.info("server").catch(() => "");
  try {
    const answer = await Promise.race([
      info,
      child.exited,
      delay(START_TIMEOUT_MS, undefined, { ref: false }),
    ]);
    if (typeof answer !== "string") return undefined;
    // Another Redis may have taken the port, so the process ids are compared.
    if (/^process_id:(\d+)/m.exec(answer)?.[1] !== `${child.pid}`) return undefined;
    return /^redis_version:(\S+)/m.exec(answer)?.[1];
  } finally {
    client.disconnect();
  }
}
