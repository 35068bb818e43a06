import { createHash } from "node:crypto";
import { Redis } from "ioredis";
import type { Store } from "../src/stores/store.ts";
import { createUpstashStore } from "../src/stores/upstash/upstash-store.ts";

/** What Upstash reads and plain Redis refuses. */
const FLAG = /^#!lua flags=allow-key-locking(?=\n)/;

export interface Pipelined {
  /** The production store, which does not know where its calls go. */
  readonly store: Store;
  /** Removes all that Redis holds. */
  empty(): Promise<unknown>;
  close(): void;
}

/**
 * The store for Upstash with Redis directly behind it: what it would send over REST goes out in one
 * pipeline with all else that is asked in the same turn, in this order. Until it is closed, `fetch`
 * leads there.
 */
export async function pipelined(address: { host: string; port: number }): Promise<Pipelined> {
  const redis = new Redis({ ...address, lazyConnect: true });
  await redis.connect();
  const digests = new Map<string, string>();
  type Waiting = { args: unknown[]; answer: (error: Error | null, result: unknown) => void };
  let queue: Waiting[] = [];

  async function flush(): Promise<void> {
    const sent = queue;
    queue = [];
    const pipeline = redis.pipeline();
    for (const { args } of sent) pipeline.call(...(args as [string]));
    const results = (await pipeline.exec()) ?? [];
    for (const [index, [error, result]] of results.entries()) sent[index]?.answer(error, result);
  }

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

  const fetched = globalThis.fetch;
  globalThis.fetch = answer as never;
  return {
    store: createUpstashStore({
      url: "http://redis",
      token: "t",
      clock: "edge",
      timeoutMs: 30_000,
    }),
    empty: () => redis.flushall(),
    close() {
      globalThis.fetch = fetched;
      redis.disconnect();
    },
  };
}

function sha1(text: string): string {
  return createHash("sha1").update(text).digest("hex");
}
