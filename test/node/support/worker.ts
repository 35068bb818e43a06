import { Miniflare, type MiniflareOptions } from "miniflare";
import { weirModule, workerConfig } from "../../../dev/workerd.ts";
import type { ConfigInput } from "../../../src/config/index.ts";

/**
 * The deadline of decisions in milliseconds, unless a test sets another deadline. On a busy
 * machine, the default of one second would leave requests undecided.
 */
export const TIMEOUT_MS = 10_000;

/** A service binding to a Worker with this source, or to a server with this host and port. */
export type Service = { readonly script: string } | { readonly address: string };

export interface WorkerOptions {
  /** The argument of `defineConfig`. It must be plain data, because it is passed as JSON. */
  readonly config: ConfigInput;
  /** The vars and secrets of the Worker. */
  readonly vars?: Record<string, string>;
  /** The service bindings of the Worker, by name. */
  readonly services?: Record<string, Service>;
  /**
   * The host and port of the server that answers every `fetch` of the Worker. For a Worker on a
   * route, this would be the zone's origin.
   */
  readonly zone?: string;
  /**
   * The source of the main module. It can import the package and Hono from "./weir.mjs". If it exports
   * `ControlObject`, this class is bound as `WEIR_CONTROL`.
   *
   * @default a module that exports `weir(defineConfig(config))`
   */
  readonly main?: string;
}

export interface RunningWorker {
  readonly url: URL;
  /** All log lines of the Worker and its runtime so far, including uncaught exceptions. */
  logs(): string[];
  stop(): Promise<void>;
}

/**
 * Runs Weir in workerd, on a free port, with the runtime settings of wrangler.toml.
 *
 * Clients connect to the Worker directly, without the proxies that `wrangler dev` puts before and
 * after it. So only workerd and Weir can change a request before it arrives at the origin. The
 * request has CF-Connecting-IP only if the client sends it.
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
  const hasControl = main.includes("ControlObject");
  if (hasControl) {
    env.WEIR_CONTROL = { type: "durable-object", worker: "weir", exportName: "ControlObject" };
  }
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
      exports: {
        CounterObject: { type: "durable-object", storage: "sqlite" },
        ...(hasControl && { ControlObject: { type: "durable-object", storage: "sqlite" } }),
      },
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
    import { ControlObject, CounterObject, defineConfig, weir } from "./weir.mjs";
    export default weir(defineConfig(${JSON.stringify({ timeoutMs: TIMEOUT_MS, ...config })}));
    export { ControlObject, CounterObject };
  `;
}
