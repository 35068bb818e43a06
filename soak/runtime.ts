import { residentBytes } from "../dev/process-usage.ts";
import { startWorkerd, weirModule, workerConfig } from "../dev/workerd.ts";
import type { ConfigInput } from "../src/config/index.ts";

/** A workerd process. */
export interface Runtime {
  /** The address of each isolate. */
  readonly urls: readonly URL[];
  /** Physical memory of the process, in bytes; undefined if it cannot be read. */
  residentBytes(): number | undefined;
  /** The number of times that the Workers and the runtime have logged each line. */
  readonly logs: ReadonlyMap<string, number>;
  stop(): Promise<void>;
}

/** The baseline: a Worker that only forwards. */
const FORWARD = `export default {
  fetch(request, { ORIGIN_URL }) {
    const { pathname, search } = new URL(request.url);
    return fetch(new Request(ORIGIN_URL + pathname + search, request));
  },
};`;

/**
 * Starts the Worker that forwards without a limit, to show the speed of the machine and the origin.
 */
export async function startBaseline(vars: Record<string, string>): Promise<Runtime> {
  return await start(1, { "main.mjs": FORWARD }, vars);
}

/** Starts Weir in several isolates with one configuration. */
export async function startWeir(
  isolates: number,
  config: ConfigInput,
  vars: Record<string, string>,
): Promise<Runtime> {
  const main = `
    import { ControlObject, CounterObject, defineConfig, weir } from "./weir.mjs";
    export default weir(defineConfig(${JSON.stringify(config)}));
    export { ControlObject, CounterObject };
  `;
  return await start(isolates, { "main.mjs": main, "weir.mjs": await weirModule() }, vars);
}

async function start(
  isolates: number,
  modules: Record<string, string>,
  vars: Record<string, string>,
): Promise<Runtime> {
  const logs = new Map<string, number>();
  const env = Object.fromEntries(
    Object.entries(vars).map(([key, value]) => [key, { type: "text", value }] as const),
  );
  const workers = Array.from({ length: isolates }, (_, index) => ({
    config: { ...workerConfig(`isolate-${index}`, modules), env },
  }));
  const { urls, pid, stop } = await startWorkerd(workers, {
    onLog: ({ message }) => logs.set(message, (logs.get(message) ?? 0) + 1),
  });
  const readMemory = () => (pid === undefined ? undefined : residentBytes(pid));
  return { urls, residentBytes: readMemory, logs, stop };
}
