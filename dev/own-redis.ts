import { tmpdir } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import getPort from "get-port";
import { type OwnedChild, startChild } from "./child.ts";
import { type Command, connectRedis } from "./redis-connection.ts";

const HOST = "127.0.0.1";
const START_TIMEOUT_MS = 10_000;

/** A `redis-server` that only one test uses. The test may pause or kill it. */
export interface OwnRedis {
  readonly host: string;
  readonly port: number;
  run(...command: Command): Promise<void>;
  /** Suspends the process; `resume` lets it continue. */
  pause(): void;
  resume(): void;
  /** Ends the process. Its data is lost. */
  kill(): Promise<void>;
  /** Starts the process again on the same port. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a `redis-server`. @returns undefined if there is none in PATH */
export async function startOwnRedis(): Promise<OwnRedis | undefined> {
  const address = { host: HOST, port: await getPort({ host: HOST }) };
  let child: OwnedChild | undefined;

  async function start(): Promise<void> {
    const noPersistence = ["--save", "", "--appendonly", "no"];
    const args = ["--port", `${address.port}`, "--bind", HOST, ...noPersistence];
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
