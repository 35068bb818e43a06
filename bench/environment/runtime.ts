import { join } from "node:path";
import { Miniflare, type MiniflareOptions } from "miniflare";
import { unstable_readConfig } from "wrangler";
import { bundleWorker } from "./bundle.ts";
import { childrenNamed, cpuMicroseconds } from "./process-cpu.ts";

type Worker = MiniflareOptions["workers"][number];
type Bindings = NonNullable<Worker["config"]["env"]>;

export type RuntimeOptions = {
  /** A file of bench/workers/. */
  worker: string;
  /** Vars and secrets. */
  vars: Record<string, string>;
  /** What the platform's own rate limiter is bound with, where a Worker uses it. */
  rateLimit?: { limit: number; period: 10 | 60 };
  /** Whether the Worker exports a CounterObject. */
  durableObject?: boolean;
  /** Where Durable Objects, and the platform's rate limiter, are stored. */
  storage?: string;
  /** The same Worker so many times, each with a memory of its own. Default: 1. */
  isolates?: number;
};

/** A workerd process with a Worker in it. */
export type Runtime = {
  /** Where its isolates answer. */
  urls: readonly URL[];
  /** CPU time of the workerd process so far, in microseconds; undefined where it cannot be read. */
  cpuMicroseconds(): number | undefined;
  stop(): Promise<void>;
};

/**
 * Runs a Worker in a workerd process of its own, by what wrangler.toml says of the runtime. Clients
 * talk to the Worker itself: no proxy of miniflare's or wrangler's stands before it, since that
 * would be most of what is measured.
 */
export async function startRuntime(options: RuntimeOptions): Promise<Runtime> {
  const script = await bundleWorker(options.worker);
  const names = Array.from({ length: options.isolates ?? 1 }, (_, index) => `isolate-${index}`);
  const before = new Set(childrenNamed("workerd"));
  const miniflare = new Miniflare({
    workers: names.map((name) => workerOf(name, script, options)),
    ...(options.storage && { resourcePersistencePath: options.storage }),
    handleStructuredLogs: ({ level, message }) => {
      if (level === "error" || level === "warn") console.error(`${options.worker}: ${message}`);
    },
  });
  try {
    const urls: URL[] = [];
    for (const name of names) urls.push(await miniflare.unsafeGetDirectURL(name));
    const [pid] = childrenNamed("workerd").filter((child) => !before.has(child));
    return {
      urls,
      cpuMicroseconds: () => (pid === undefined ? undefined : cpuMicroseconds(pid)),
      stop: () => miniflare.dispose(),
    };
  } catch (error) {
    await miniflare.dispose();
    throw error;
  }
}

function workerOf(name: string, script: string, options: RuntimeOptions): Worker {
  const { compatibility_date, compatibility_flags } = unstable_readConfig({
    config: join(import.meta.dirname, "../../wrangler.toml"),
  });
  const env: Bindings = {};
  for (const [key, value] of Object.entries(options.vars)) env[key] = { type: "text", value };
  if (options.rateLimit) {
    env.RATE_LIMITER = { type: "rate-limit", namespace: "1", simple: options.rateLimit };
  }
  if (options.durableObject) {
    // All isolates share the first one's objects, as all isolates of a Worker do on Cloudflare.
    env.COUNTERS = { type: "durable-object", worker: "isolate-0", exportName: "CounterObject" };
  }
  return {
    config: {
      name,
      compatibilityDate: compatibility_date as string,
      compatibilityFlags: compatibility_flags,
      manifest: {
        mainModule: "main.mjs",
        modules: { "main.mjs": { type: "esm", contents: script } },
      },
      env,
      ...(options.durableObject && {
        exports: { CounterObject: { type: "durable-object" as const, storage: "sqlite" as const } },
      }),
    },
    dev: { unsafeDirectSockets: [{}], stripCfConnectingIp: false },
  };
}
