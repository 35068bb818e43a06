import { createHash } from "node:crypto";
import { Redis } from "ioredis";
import type { Store } from "../src/stores/store.ts";
import { createUpstashStore } from "../src/stores/upstash/upstash-store.ts";

/** A flag that Upstash reads and plain Redis refuses. */
const FLAG = /^#!lua flags=allow-key-locking(?=\n)/;

/** A command that waits for the next pipeline. */
interface QueuedCommand {
  readonly args: readonly unknown[];
  readonly answer: (error: Error | null, result: unknown) => void;
}

export interface PipelinedStore {
  /** The store that production uses. Its calls go to Redis. */
  readonly store: Store;
  /** Removes all keys from Redis. */
  empty(): Promise<unknown>;
  close(): void;
}

/**
 * Connects the store for Upstash directly to Redis. The store may send several REST requests in one
 * turn of the event loop. They go to Redis in one pipeline, in the same order. The global `fetch`
 * is replaced until `close`.
 */
export async function createPipelinedStore(address: {
  host: string;
  port: number;
}): Promise<PipelinedStore> {
  const redis = new Redis({ ...address, lazyConnect: true });
  await redis.connect();
  const digests = new Map<string, string>();
  let queue: QueuedCommand[] = [];

  /** Sends the queued commands, and passes each result to its command. */
  async function flush(): Promise<void> {
    const sent = queue;
    queue = [];
    const pipeline = redis.pipeline();
    for (const { args } of sent) pipeline.call(...(args as unknown as [string]));
    const results = (await pipeline.exec()) ?? [];
    for (const [index, [error, result]] of results.entries()) sent[index]?.answer(error, result);
  }

  /** Answers a request of the store as Upstash's REST server would. */
  async function answer(_: unknown, { body }: { body: string }): Promise<unknown> {
    const [name, script, ...rest] = JSON.parse(body);
    let source = script;
    if (name === "eval") {
      source = script.replace(FLAG, "");
      digests.set(sha1(script), sha1(source));
    }
    const args = [name, digests.get(source) ?? source, ...rest];
    const { error, result } = await new Promise<{ error: Error | null; result: unknown }>(
      (done) => {
        if (queue.length === 0) setImmediate(flush);
        queue.push({ args, answer: (error, result) => done({ error, result }) });
      },
    );
    const text = JSON.stringify(error ? { error: error.message } : { result });
    return { ok: !error, status: error ? 400 : 200, text: async () => text };
  }

  const originalFetch = globalThis.fetch;
  globalThis.fetch = answer as never;
  return {
    store: createUpstashStore({
      url: "http://redis",
      token: "t",
      clock: "edge",
      timeoutMs: 30_000,
      // The calls of a case must arrive in their order.
      maxCalls: Number.POSITIVE_INFINITY,
      maxCallsOfCounter: Number.POSITIVE_INFINITY,
    }),
    empty: () => redis.flushall(),
    close() {
      globalThis.fetch = originalFetch;
      redis.disconnect();
    },
  };
}

function sha1(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}
