import { Miniflare, type MiniflareOptions } from "miniflare";
import { weirModule, workerConfig } from "../../../dev/workerd.ts";
import type { ConfigInput } from "../../../src/config/index.ts";

/**
 * The deadline of decisions, if a test does not say otherwise: long enough for a busy machine, where
 * the default of a second leaves requests undecided.
 */
export const TIMEOUT_MS = 10_000;

/** What a service is: another Worker, by its source, or a server, by its host and port. */
export type Service = { script: string } | { address: string };

export type WorkerOptions = {
  /** What weir.config.ts would hold. Plain data, as JSON carries it. */
  config: ConfigInput;
  /** Vars and secrets. */
  vars?: Record<string, string>;
  /** Service bindings, by their names. */
  services?: Record<string, Service>;
  /** Host and port of what answers every `fetch`, as a zone's own origin does behind a route. */
  zone?: string;
  /** Another main module than `weir(config)`; it finds the package and Hono in "./weir.mjs". */
  main?: string;
};

export type RunningWorker = {
  url: URL;
  /** What the Worker and its runtime have logged so far, uncaught exceptions included. */
  logs(): string[];
  stop(): Promise<void>;
};

/**
 * Runs Weir in workerd, on a port of its own, by what wrangler.toml says of the runtime.
 *
 * Clients talk to the Worker itself, without the proxies that `wrangler dev` puts before and
 * behind it: what arrives at the origin is what workerd and Weir make of it, and CF-Connecting-IP
 * is there only when the client sends it.
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const logs: string[] = [];
  const runtime = new Miniflare({
    workers: await workersOf(options),
    handleStructuredLogs: ({ level, message }) => logs.push(`${level}: ${message}`),
  });
  try {
    const url = await runtime.unsafeGetDirectURL("weir");
    return { url, logs: () => [...logs], stop: () => runtime.dispose() };
  } catch (error) {
    await runtime.dispose();
    throw error;
  }
}

type Worker = MiniflareOptions["workers"][number];
type Bindings = NonNullable<Worker["config"]["env"]>;

async function workersOf({
  config,
  vars = {},
  services = {},
  zone,
  main = mainModule(config),
}: WorkerOptions): Promise<Worker[]> {
  const counters = { worker: "weir", exportName: "CounterObject" };
  const env: Bindings = { COUNTERS: { type: "durable-object", ...counters } };
  for (const [name, value] of Object.entries(vars)) env[name] = { type: "text", value };
  const others: Worker[] = [];
  for (const [name, service] of Object.entries(services)) {
    if ("address" in service) {
      env[name] = external(service.address);
    } else {
      env[name] = { type: "worker", worker: name };
      others.push({ config: workerConfig(name, { "main.mjs": service.script }) });
    }
  }
  if (zone) {
    const relay = workerConfig("zone", { "main.mjs": RELAY });
    others.push({ config: { ...relay, env: { SERVER: external(zone) } } });
  }
  const weir: Worker = {
    config: {
      ...workerConfig("weir", { "main.mjs": main, "weir.mjs": await weirModule() }),
      env,
      exports: { CounterObject: { type: "durable-object", storage: "sqlite" } },
    },
    dev: {
      unsafeDirectSockets: [{}],
      stripCfConnectingIp: false,
      ...(zone && { outboundService: { type: "worker", worker: "zone" } }),
    },
  };
  return [weir, ...others];
}

const RELAY = "export default { fetch: (request, { SERVER }) => SERVER.fetch(request) };";

function external(address: string): Bindings[string] {
  return { type: "external", address, http: {} };
}

function mainModule(config: ConfigInput): string {
  return `
    import { CounterObject, defineConfig, weir } from "./weir.mjs";
    export default weir(defineConfig(${JSON.stringify({ timeoutMs: TIMEOUT_MS, ...config })}));
    export { CounterObject };
  `;
}
