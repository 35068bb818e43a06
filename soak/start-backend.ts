import { once } from "node:events";
import { join } from "node:path";
import { startChild } from "../dev/child.ts";
import type { FromBackend, ToBackend } from "./backend.ts";
import type { RestFaultName } from "./rest-faults.ts";

export type Backend = {
  /** What tells the Worker of it. */
  vars: { ORIGIN_URL: string; UPSTASH_REDIS_REST_URL: string; UPSTASH_REDIS_REST_TOKEN: string };
  /** Has the REST server fail from now on; without a fault, work again. */
  inject(fault?: RestFaultName): Promise<void>;
  stop(): Promise<void>;
};

/** @throws when the child process ends before it is ready; it has printed why. */
export async function startBackend({
  host,
  port,
}: {
  host: string;
  port: number;
}): Promise<Backend> {
  const child = await startChild(
    process.execPath,
    [join(import.meta.dirname, "backend.ts"), JSON.stringify({ host, port })],
    { stdio: ["ignore", "inherit", "inherit", "ipc"] },
  );

  async function hear(): Promise<FromBackend> {
    const ended = child.exited.then(() => {
      throw new Error("The soak's origin and REST server have ended.");
    });
    const [message] = await Promise.race([once(child.process, "message"), ended]);
    return message as FromBackend;
  }

  const { originUrl, restUrl, token } = (await hear()) as Exclude<FromBackend, string>;
  return {
    vars: {
      ORIGIN_URL: originUrl,
      UPSTASH_REDIS_REST_URL: restUrl,
      UPSTASH_REDIS_REST_TOKEN: token,
    },
    async inject(fault) {
      const done = hear();
      child.process.send({ inject: fault } satisfies ToBackend);
      await done;
    },
    stop: child.stop,
  };
}
