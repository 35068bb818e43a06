import { tmpdir } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import getPort from "get-port";
import { type OwnedChild, startChild } from "./child.ts";
import { type Command, connectRedis } from "./redis-connection.ts";

const HOST = "127.0.0.1";
const START_TIMEOUT_MS = 10_000;

/** A `redis-server` of one's own, to be mistreated. */
export type OwnRedis = {
  host: string;
  port: number;
  run(...command: Command): Promise<void>;
  /** Stops its process without ending it, and lets it go on. */
  pause(): void;
  resume(): void;
  /** Ends it; what it held is lost. */
  kill(): Promise<void>;
  /** Starts it again, at the same port. */
  start(): Promise<void>;
  stop(): Promise<void>;
};

/** @returns undefined when PATH has no redis-server */
export async function startOwnRedis(): Promise<OwnRedis | undefined> {
  const address = { host: HOST, port: await getPort({ host: HOST }) };
  let child: OwnedChild | undefined;

  async function start(): Promise<void> {
    const keepNothing = ["--save", "", "--appendonly", "no"];
    const args = ["--port", `${address.port}`, "--bind", HOST, ...keepNothing];
    child = await startChild("redis-server", args, { cwd: tmpdir(), stdio: "ignore" });
    const startedAt = Date.now();
    while (true) {
      try {
        (await connectRedis(address)).close();
        return;
      } catch (error) {
        if (Date.now() - startedAt > START_TIMEOUT_MS) throw error;
        await delay(20);
      }
    }
  }

  async function kill(): Promise<void> {
    child?.process.kill("SIGKILL");
    await child?.exited;
  }

  try {
    await start();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  return {
    ...address,
    async run(...command) {
      const connection = await connectRedis(address);
      const [outcome] = await connection.run([command]);
      connection.close();
      if (outcome && "error" in outcome) throw new Error(outcome.error);
    },
    pause: () => child?.process.kill("SIGSTOP"),
    resume: () => child?.process.kill("SIGCONT"),
    kill,
    start,
    stop: kill,
  };
}
