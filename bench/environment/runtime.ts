import { cpuMicroseconds } from "../../dev/process-usage.ts";
import { startWorkerd, type WorkerdWorker, workerConfig } from "../../dev/workerd.ts";
import { bundleWorker } from "./bundle.ts";

type WorkerConfig = WorkerdWorker["config"];
type Bindings = NonNullable<WorkerConfig["env"]>;

/** Options of {@link startRuntime}. */
export interface RuntimeOptions {
  /** A file of bench/workers/. */
  readonly worker: string;
  /** Vars and secrets. */
  readonly vars: Readonly<Record<string, string>>;
  /** The settings of Cloudflare's own rate limiter, for a Worker that uses it. @default no binding */
  readonly rateLimit?: { readonly limit: number; readonly period: 10 | 60 };
  /** Whether the Worker exports a CounterObject. @default false */
  readonly durableObject?: boolean;
  /** The folder for the data of Durable Objects and of `rateLimit`. @default a temporary folder */
  readonly storage?: string;
  /** The number of isolates that run the Worker, each with its own memory. @default 1 */
  readonly isolates?: number;
}

/** A workerd process that runs one Worker in one isolate or several. */
export interface Runtime {
  /** The address of each isolate. */
  readonly urls: readonly URL[];
  /** CPU time of the process so far, in microseconds; undefined if it cannot be read. */
  cpuMicroseconds(): number | undefined;
  stop(): Promise<void>;
}

/** Starts a Worker with the compatibility settings of wrangler.toml. */
export async function startRuntime(options: RuntimeOptions): Promise<Runtime> {
  const script = await bundleWorker(options.worker);
  const names = Array.from({ length: options.isolates ?? 1 }, (_, index) => `isolate-${index}`);
  const workers = names.map((name) => ({ config: configOf(name, script, options) }));
  const { urls, pid, stop } = await startWorkerd(workers, {
    storage: options.storage,
    onLog: ({ level, message }) => {
      if (level === "error" || level === "warn") console.error(`${options.worker}: ${message}`);
    },
  });
  const readCpu = () => (pid === undefined ? undefined : cpuMicroseconds(pid));
  return { urls, cpuMicroseconds: readCpu, stop };
}

function configOf(name: string, script: string, options: RuntimeOptions): WorkerConfig {
  const env: Bindings = {};
  for (const [key, value] of Object.entries(options.vars)) env[key] = { type: "text", value };
  if (options.rateLimit) {
    env.RATE_LIMITER = { type: "rate-limit", namespace: "1", simple: options.rateLimit };
  }
  if (options.durableObject) {
    // All isolates use the objects of the first isolate, because on Cloudflare, too, all isolates
    // call the same objects.
    env.COUNTERS = { type: "durable-object", worker: "isolate-0", exportName: "CounterObject" };
  }
  return {
    ...workerConfig(name, { "main.mjs": script }),
    env,
    ...(options.durableObject && {
      exports: { CounterObject: { type: "durable-object", storage: "sqlite" } },
    }),
  };
}
