import { Miniflare } from "miniflare";
import { weirModule, workerConfig } from "../../../dev/workerd.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { TIMEOUT_MS } from "../support/worker.ts";
import { MARKERS } from "./clients.ts";

export interface PrivacyWorker {
  readonly url: URL;
  logs(): string;
  stop(): Promise<void>;
}

export interface PrivacyWorkerOptions {
  readonly config: ConfigInput;
  readonly vars: Readonly<Record<string, string>>;
  /** The folder in which Durable Objects are stored. */
  readonly folder?: string;
}

/** Runs Weir with a custom key and with its secrets, and collects the log of Weir and its runtime. */
export async function startPrivacyWorker({
  config,
  vars,
  folder,
}: PrivacyWorkerOptions): Promise<PrivacyWorker> {
  const logs: string[] = [];
  const secrets = {
    INTERNAL: MARKERS["an exempt client's token"],
    JWT_SECRET: MARKERS["the JWT's secret"],
    ...vars,
  };
  const runtime = new Miniflare({
    workers: [
      {
        config: {
          ...workerConfig("weir", {
            "main.mjs": mainModule(config),
            "weir.mjs": await weirModule(),
          }),
          env: {
            COUNTERS: { type: "durable-object", worker: "weir", exportName: "CounterObject" },
            ...Object.fromEntries(
              Object.entries(secrets).map(([name, value]) => [name, { type: "text", value }]),
            ),
          },
          exports: { CounterObject: { type: "durable-object", storage: "sqlite" } },
        },
        dev: { unsafeDirectSockets: [{}], stripCfConnectingIp: false },
      },
    ],
    ...(folder !== undefined && { resourcePersistencePath: folder }),
    handleStructuredLogs: ({ level, message }) => logs.push(`${level}: ${message}`),
  });
  try {
    const url = await runtime.unsafeGetDirectURL("weir");
    return { url, logs: () => logs.join("\n"), stop: () => runtime.dispose() };
  } catch (error) {
    await runtime.dispose();
    throw error;
  }
}

function mainModule(config: ConfigInput): string {
  return `
    import { CounterObject, defineConfig, weir } from "./weir.mjs";
    const tenant = (request) => request.headers.get("x-tenant");
    const custom = { keys: { tenant } };
    export default weir(defineConfig({ custom, ...${JSON.stringify({ timeoutMs: TIMEOUT_MS, ...config })} }));
    export { CounterObject };
  `;
}
