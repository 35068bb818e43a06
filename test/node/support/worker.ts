import { join } from "node:path";
import { build } from "esbuild";
import { Miniflare, type MiniflareOptions } from "miniflare";
import { unstable_readConfig } from "wrangler";
import type { ConfigInput } from "../../../src/config/index.ts";

const ROOT = join(import.meta.dirname, "../../..");

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
/** Modules' sources by their names; `main.mjs` is the one that is run. */
type Modules = Record<string, string>;

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

/** What wrangler.toml says of the runtime, for a Worker made of these modules. */
export function workerConfig(name: string, modules: Modules): Worker["config"] {
  const { compatibility_date, compatibility_flags } = unstable_readConfig({
    config: join(ROOT, "wrangler.toml"),
  });
  return {
    name,
    compatibilityDate: compatibility_date as string,
    compatibilityFlags: compatibility_flags,
    manifest: {
      mainModule: "main.mjs",
      modules: Object.fromEntries(
        Object.entries(modules).map(([file, contents]) => [file, { type: "esm", contents }]),
      ),
    },
  };
}

function mainModule(config: ConfigInput): string {
  return `
    import { CounterObject, defineConfig, weir } from "./weir.mjs";
    export default weir(defineConfig(${JSON.stringify({ timeoutMs: TIMEOUT_MS, ...config })}));
    export { CounterObject };
  `;
}

let bundled: Promise<string> | undefined;

/** The source in one module, the same for every configuration. */
export function weirModule(): Promise<string> {
  bundled ??= bundle(`
    export { CounterObject, rateLimit, WeirService, weir } from "./src/index.ts";
    export { Hono } from "hono";
    export { defineConfig } from "./src/config/index.ts";
  `);
  return bundled;
}

async function bundle(contents: string): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: ROOT },
    bundle: true,
    write: false,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*"],
    alias: unstable_readConfig({ config: join(ROOT, "wrangler.toml") }).alias ?? {},
    absWorkingDir: ROOT,
  });
  return outputFiles.map(({ text }) => text).join("");
}
