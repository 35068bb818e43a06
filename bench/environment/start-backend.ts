import { once } from "node:events";
import { join } from "node:path";
import { startChild } from "../../dev/child.ts";

/** What the parent says to the child process, and what that says back. */
export type ToBackend = { ask: "calls" };
export type FromBackend = { originUrl: string; restUrls: string[] } | { calls: number };

/** Origin and REST servers, in a child process. */
export type Backend = {
  originUrl: string;
  /** What the Workers are to be told of the REST server at a distance. */
  restVars(distanceMs: number): Record<string, string>;
  /** REST calls received so far, at all distances together. */
  restCalls(): Promise<number>;
  stop(): Promise<void>;
};

export type BackendOptions = {
  redis: { host: string; port: number };
  /** Milliseconds that a REST call takes besides its work; a server is started for each. */
  distances: readonly number[];
};

/** @throws when the child process ends before it is ready; it has printed why. */
export async function startBackend({ redis, distances }: BackendOptions): Promise<Backend> {
  const { host, port } = redis;
  const child = await startChild(
    process.execPath,
    [join(import.meta.dirname, "backend.ts"), JSON.stringify({ redis: { host, port }, distances })],
    { stdio: ["ignore", "inherit", "inherit", "ipc"] },
  );

  async function hear<Message extends FromBackend>(): Promise<Message> {
    const ended = child.exited.then(() => {
      throw new Error("The bench's origin and REST servers have ended.");
    });
    const [message] = await Promise.race([once(child.process, "message"), ended]);
    return message as Message;
  }

  try {
    const { originUrl, restUrls } = await hear<Extract<FromBackend, { originUrl: string }>>();
    return {
      originUrl,
      restVars: (distanceMs) => ({
        UPSTASH_REDIS_REST_URL: restUrls[distances.indexOf(distanceMs)] as string,
        UPSTASH_REDIS_REST_TOKEN: "bench",
      }),
      async restCalls() {
        const heard = hear<Extract<FromBackend, { calls: number }>>();
        child.process.send({ ask: "calls" } satisfies ToBackend);
        return (await heard).calls;
      },
      stop: child.stop,
    };
  } catch (error) {
    await child.stop();
    throw error;
  }
}
