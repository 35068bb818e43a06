import { Miniflare } from "miniflare";
import { weirModule, workerConfig } from "../../../dev/workerd.ts";
import type { ConfigInput } from "../../../src/config/index.ts";
import { TIMEOUT_MS } from "../support/worker.ts";
import { MARKERS } from "./clients.ts";

export interface Stage {
  readonly url: URL;
  logs(): string;
  stop(): Promise<void>;
}

export interface StageOptions {
  readonly config: ConfigInput;
  readonly vars: Readonly<Record<string, string>>;
  /** Where Durable Objects are kept. */
  readonly kept?: string;
}

/** Runs Weir with a custom key and with its secrets, and gathers what it and its runtime print. */
export async function startStage({ config, vars, kept }: StageOptions): Promise<Stage> {
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
    ...(kept !== undefined && { resourcePersistencePath: kept }),
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
    export default weir(defineConfig(${JSON.stringify({ timeoutMs: TIMEOUT_MS, ...config })}), { keys: { tenant } });
    export { CounterObject };
  `;
}
