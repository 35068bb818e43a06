import { once } from "node:events";
import { join } from "node:path";
import { startChild } from "../dev/child.ts";
import type { BackendMessage, BackendRequest } from "./backend.ts";
import type { RestFaultName } from "./rest-faults.ts";

/** The origin and the REST server, in a child process. */
export interface Backend {
  /** The vars and secrets that connect a Worker to both servers. */
  readonly vars: {
    readonly ORIGIN_URL: string;
    readonly UPSTASH_REDIS_REST_URL: string;
    readonly UPSTASH_REDIS_REST_TOKEN: string;
  };
  /** Makes the REST server fail from now on, or work again if `fault` is undefined. */
  inject(fault?: RestFaultName): Promise<void>;
  stop(): Promise<void>;
}

interface RedisAddress {
  readonly host: string;
  readonly port: number;
}

/** @throws {Error} when the child process ends before it is ready; the child has printed the reason */
export async function startBackend({ host, port }: RedisAddress): Promise<Backend> {
  const child = await startChild(
    process.execPath,
    [join(import.meta.dirname, "backend.ts"), JSON.stringify({ host, port })],
    { stdio: ["ignore", "inherit", "inherit", "ipc"] },
  );

  async function nextMessage(): Promise<BackendMessage> {
    const ended = child.exited.then(() => {
      throw new Error("The process of the soak's origin and REST server has ended.");
    });
    const [message] = await Promise.race([once(child.process, "message"), ended]);
    return message as BackendMessage;
  }

  const { originUrl, restUrl, token } = (await nextMessage()) as Exclude<BackendMessage, string>;
  return {
    vars: {
      ORIGIN_URL: originUrl,
      UPSTASH_REDIS_REST_URL: restUrl,
      UPSTASH_REDIS_REST_TOKEN: token,
    },
    async inject(fault) {
      const injected = nextMessage();
      child.process.send({ inject: fault } satisfies BackendRequest);
      await injected;
    },
    stop: child.stop,
  };
}
