import { Miniflare, type MiniflareOptions } from "miniflare";
import { weirModule, workerConfig } from "../../../dev/workerd.ts";
import type { ConfigInput } from "../../../src/config/index.ts";

type Worker = MiniflareOptions["workers"][number];

export interface IsolatesOptions {
  /** The number of isolates. */
  readonly count: number;
  readonly config: ConfigInput;
  /** The vars and secrets, which are the same for all isolates. */
  readonly vars: Readonly<Record<string, string>>;
}

export interface Isolates {
  readonly urls: readonly URL[];
  /** The lines that all isolates have logged so far. Each line begins with its level. */
  logs(): readonly string[];
  stop(): Promise<void>;
}

/**
 * Runs the same Worker in many isolates of one workerd, each with its own memory. So each fault
 * gets a new isolate, which starts much faster than a process.
 *
 * `GET /chaos/throw` makes the Worker's Durable Objects throw from then on. Other paths cause the
 * other faults.
 */
export async function startIsolates({ count, config, vars }: IsolatesOptions): Promise<Isolates> {
  const logs: string[] = [];
  const weir = await weirModule();
  const names = Array.from({ length: count }, (_, index) => `isolate-${index}`);
  const runtime = new Miniflare({
    workers: names.map((name) => workerOf(name, weir, config, vars)),
    handleStructuredLogs: ({ level, message }) => logs.push(`${level}: ${message}`),
  });
  try {
    const urls: URL[] = [];
    for (const name of names) urls.push(await runtime.unsafeGetDirectURL(name));
    return { urls, logs: () => [...logs], stop: () => runtime.dispose() };
  } catch (error) {
    await runtime.dispose();
    throw error;
  }
}

function workerOf(
  name: string,
  weir: string,
  config: ConfigInput,
  vars: Record<string, string>,
): Worker {
  const counters = { worker: name, exportName: "CounterObject" };
  return {
    config: {
      ...workerConfig(name, { "main.mjs": mainModule(config), "weir.mjs": weir }),
      env: {
        COUNTERS: { type: "durable-object", ...counters },
        ...Object.fromEntries(
          Object.entries(vars).map(([key, value]) => [key, { type: "text", value }]),
        ),
      },
      exports: { CounterObject: { type: "durable-object", storage: "sqlite" } },
    },
    dev: { unsafeDirectSockets: [{}], stripCfConnectingIp: false },
  };
}

/**
 * Durable Objects run in the Worker's isolate here, so a variable of the module can select their
 * fault.
 */
function mainModule(config: ConfigInput): string {
  return `
    import { CounterObject as Counters, defineConfig, weir } from "./weir.mjs";

    const handler = weir(defineConfig(${JSON.stringify(config)}));
    let fault = "none";

    const FAULTS = {
      none: (call) => call(),
      throw: () => { throw new Error("broken; cf-connecting-ip: 203.0.113.7"); },
      hang: () => scheduler.wait(60_000),
      slow: async (call) => { await scheduler.wait(60); return call(); },
      null: () => null,
      shape: () => [{ admitted: true }],
      "after it has counted": async (call) => { await call(); throw new Error("broken"); },
      abort: (call, ctx) => ctx.abort("restarted"),
      block: (call, ctx) => ctx.blockConcurrencyWhile(() => scheduler.wait(20_000)),
      storage: (call, ctx) => { ctx.storage.sql.exec("SELECT * FROM nothing"); },
    };

    export class CounterObject extends Counters {
      #ctx;
      constructor(ctx, env) {
        if (fault === "constructor") throw new Error("broken");
        super(ctx, env);
        this.#ctx = ctx;
      }
      run(...given) {
        return (FAULTS[fault] ?? FAULTS.none)(() => super.run(...given), this.#ctx);
      }
      decide(...given) {
        return (FAULTS[fault] ?? FAULTS.none)(() => super.decide(...given), this.#ctx);
      }
    }

    export default {
      fetch(request, env, ctx) {
        const [, name] = /\\/chaos\\/(.+)$/.exec(decodeURI(request.url)) ?? [];
        if (!name) return handler.fetch(request, env, ctx);
        fault = name;
        return new Response();
      },
    };
  `;
}
