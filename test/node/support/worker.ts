import { Miniflare, type MiniflareOptions } from "miniflare";
import { childrenNamed, residentBytes } from "../../../dev/process-usage.ts";
import {
  type Constants,
  isolatedWeirModule,
  weirModule,
  workerConfig,
} from "../../../dev/workerd.ts";
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
  /** The source of the field `custom` of the configuration, which has functions. */
  readonly custom?: string;
  /**
   * The source of the main module, which is then used alone. It can import the package and Hono from "./weir.mjs". If
   * it exports `ControlObject`, this class is bound as `WEIR_CONTROL`.
   *
   * @default a module that exports `weir(defineConfig(config))`
   */
  readonly main?: string;
  /** Values that replace constants of Weir, such as shorter intervals. Only a Worker with a `main` can have them. */
  readonly constants?: Constants;
}

export interface RunningWorker {
  readonly url: URL;
  /** All log lines of the Worker and its runtime so far, including uncaught exceptions. */
  logs(): string[];
  /** The physical memory of the runtime, with all its Workers, in bytes; 0 if there is no /proc, as on macOS. */
  residentBytes(): number;
  /** Stops the runtime, with all its Workers. */
  stop(): Promise<void>;
}

/** Runs Weir in a workerd of its own: see {@link startWorkers}. */
export async function startWorker(
  options: WorkerOptions,
  storage?: string,
): Promise<RunningWorker> {
  const [worker] = await startWorkers([options], storage);
  return worker as RunningWorker;
}

/**
 * Runs one Weir or several in one workerd, each on a free port, with the runtime settings of wrangler.toml. One workerd
 * for all cases of a test file starts many times faster than one for each case.
 *
 * Clients connect to the Workers directly, without the proxies that `wrangler dev` puts before and
 * after it. So only workerd and Weir can change a request before it arrives at the origin. The
 * request has CF-Connecting-IP only if the client sends it.
 *
 * @param storage the folder for Durable Objects. @default a temporary folder
 */
export async function startWorkers(
  options: readonly WorkerOptions[],
  storage?: string,
): Promise<readonly RunningWorker[]> {
  const lines: string[] = [];
  const cases = options.map((each, index) => ({ ...each, index }));
  // Only one isolate starts for all cases that do not need a main module or a zone of their own.
  const isolates = Map.groupBy(cases, ({ main, zone, index }) => (main ? index : (zone ?? "")));
  const workers = await Promise.all(
    [...isolates.values()].map((own, index) => workersOf(isolateName(index), own)),
  );
  const others = childrenNamed("workerd");
  const runtime = new Miniflare({
    workers: workers.flat(),
    ...(storage && { resourcePersistencePath: storage }),
    handleStructuredLogs: ({ level, message }) => lines.push(`${level}: ${message}`),
  });
  try {
    const urls = new Map<number, URL>();
    for (const [at, own] of [...isolates.values()].entries()) {
      for (const { index, main } of own) {
        const entrypoint = main ? undefined : caseName(index);
        urls.set(index, await runtime.unsafeGetDirectURL(isolateName(at), entrypoint));
      }
    }
    const pid = childrenNamed("workerd").find((child) => !others.includes(child));
    return cases.map(({ index }) => ({
      url: urls.get(index) as URL,
      logs: () => linesOf(index, lines),
      residentBytes: () => (pid === undefined ? 0 : (residentBytes(pid) ?? 0)),
      stop: () => runtime.dispose(),
    }));
  } catch (error) {
    await runtime.dispose();
    throw error;
  }
}

const isolateName = (at: number) => (at === 0 ? "weir" : `weir-${at}`);
const caseName = (index: number) => `case${index}`;

/** Returns the lines of a case, and all lines of the runtime. */
function linesOf(index: number, lines: readonly string[]): string[] {
  return lines.flatMap((line) => {
    const [mark, of] = /\[case(\d+)\] /.exec(line) ?? [];
    if (mark === undefined) return [line];
    return Number(of) === index ? [line.replace(mark, "")] : [];
  });
}

type Worker = MiniflareOptions["workers"][number];
type Bindings = NonNullable<Worker["config"]["env"]>;
type Case = WorkerOptions & { readonly index: number };

/** Returns the Worker of an isolate, and the Workers that it calls. */
async function workersOf(name: string, cases: readonly Case[]): Promise<Worker[]> {
  const [{ main, zone, constants } = {}] = cases;
  const source = main ?? mainModule(cases);
  const others: Worker[] = [];
  const env: Bindings = {};
  const exports: Worker["config"]["exports"] = {};
  for (const { index, vars = {}, services = {} } of cases) {
    // Each case has bindings and objects of its own.
    const suffix = main ? "" : `_${index}`;
    const objects = { COUNTERS: "CounterObject", WEIR_CONTROL: "ControlObject" };
    for (const [binding, exported] of Object.entries(objects)) {
      if (!source.includes(exported)) continue;
      const exportName = exported + suffix;
      env[binding + suffix] = { type: "durable-object", worker: name, exportName };
      exports[exportName] = { type: "durable-object", storage: "sqlite" };
    }
    for (const [key, value] of Object.entries(vars)) env[key + suffix] = { type: "text", value };
    for (const [key, service] of Object.entries(services)) {
      const other = key + suffix;
      if ("address" in service) {
        env[other] = external(service.address);
      } else {
        env[other] = { type: "worker", worker: other };
        others.push({ config: workerConfig(other, { "main.mjs": service.script }) });
      }
    }
  }
  if (zone) {
    const relay = workerConfig(`${name}-zone`, { "main.mjs": RELAY });
    others.push({ config: { ...relay, env: { SERVER: external(zone) } } });
  }
  const weir: Worker = {
    config: {
      ...workerConfig(name, {
        "main.mjs": source,
        "weir.mjs": await (main ? weirModule(constants) : isolatedWeirModule()),
      }),
      env,
      exports,
    },
    dev: {
      unsafeDirectSockets: main
        ? [{}]
        : cases.map(({ index }) => ({ entrypoint: caseName(index) })),
      stripCfConnectingIp: false,
      ...(zone && { outboundService: { type: "worker", worker: `${name}-zone` } }),
    },
  };
  return [weir, ...others];
}

const RELAY = "export default { fetch: (request, { SERVER }) => SERVER.fetch(request) };";

function external(address: string): Bindings[string] {
  return { type: "external", address, http: {} };
}

/** Returns a module with an entrypoint for each case, which has a Weir of its own. */
function mainModule(cases: readonly Case[]): string {
  const entrypoints = cases.map(({ index, config, custom = "undefined" }) => {
    const input = JSON.stringify({ timeoutMs: TIMEOUT_MS, ...config });
    return `
      const { entrypoint: entrypoint${index}, weir: weir${index} } = start(${index}, { custom: ${custom}, ...${input} });
      export { entrypoint${index} as ${caseName(index)} };
      export const ControlObject_${index} = weir${index}.ControlObject;
      export const CounterObject_${index} = weir${index}.CounterObject;
    `;
  });
  return `
    import { load } from "./weir.mjs";
    function start(index, config) {
      const levels = ["debug", "info", "log", "warn", "error"];
      const marked = levels.map((level) => [
        level,
        (text, ...more) => console[level](\`[case\${index}] \${text}\`, ...more),
      ]);
      const weir = load(Object.fromEntries(marked));
      const handler = weir.weir(weir.defineConfig(config));
      const suffix = \`_\${index}\`;
      let own;
      const fetch = (request, env, ctx) => {
        own ??= Object.fromEntries(
          Object.entries(env)
            .filter(([name]) => name.endsWith(suffix))
            .map(([name, value]) => [name.slice(0, -suffix.length), value]),
        );
        return handler.fetch(request, own, ctx);
      };
      return { entrypoint: { fetch }, weir };
    }
    ${entrypoints.join("")}
  `;
}
