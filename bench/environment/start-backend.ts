import { once } from "node:events";
import { join } from "node:path";
import { startChild } from "../../dev/child.ts";

/** A message in which the parent asks for the number of REST calls. */
export interface BackendRequest {
  readonly type: "calls";
}

interface Addresses {
  readonly originUrl: string;
  readonly restUrls: readonly string[];
}

interface Calls {
  readonly calls: number;
}

/** A message from the child: first the addresses, then an answer to each `BackendRequest`. */
export type BackendMessage = Addresses | Calls;

/** The origin and the REST servers, in a child process. */
export interface Backend {
  readonly originUrl: string;
  /** The vars and secrets that connect a Worker to the REST server with this latency. */
  restVars(redisLatencyMs: number): Record<string, string>;
  /** REST calls received so far, summed over all REST servers. */
  restCalls(): Promise<number>;
  stop(): Promise<void>;
}

export interface BackendOptions {
  readonly redis: { readonly host: string; readonly port: number };
  /**
   * The delay of each REST server's answers, in milliseconds. One server is started for each value.
   */
  readonly redisLatenciesMs: readonly number[];
  /** The delay of the origin's answers, in milliseconds. */
  readonly originLatencyMs: number;
}

/** @throws {Error} when the child process ends before it is ready; the child has printed the reason */
export async function startBackend({ redis, ...rest }: BackendOptions): Promise<Backend> {
  const { host, port } = redis;
  const { redisLatenciesMs } = rest;
  const options = JSON.stringify({ redis: { host, port }, ...rest });
  const child = await startChild(
    process.execPath,
    [join(import.meta.dirname, "backend.ts"), options],
    { stdio: ["ignore", "inherit", "inherit", "ipc"] },
  );

  async function nextMessage<Message extends BackendMessage>(): Promise<Message> {
    const ended = child.exited.then(() => {
      throw new Error("The process of the bench's origin and REST servers has ended.");
    });
    const [message] = await Promise.race([once(child.process, "message"), ended]);
    return message as Message;
  }

  try {
    const { originUrl, restUrls } = await nextMessage<Addresses>();
    return {
      originUrl,
      restVars: (redisLatencyMs) => ({
        UPSTASH_REDIS_REST_URL: restUrls[redisLatenciesMs.indexOf(redisLatencyMs)] as string,
        UPSTASH_REDIS_REST_TOKEN: "bench",
      }),
      async restCalls() {
        const message = nextMessage<Calls>();
        child.process.send({ type: "calls" } satisfies BackendRequest);
        return (await message).calls;
      },
      stop: child.stop,
    };
  } catch (error) {
    await child.stop();
    throw error;
  }
}
