import { Miniflare, type MiniflareOptions } from "miniflare";
import { childrenNamed } from "../bench/environment/process-cpu.ts";
import type { ConfigInput } from "../src/config/index.ts";
import { weirModule, workerConfig } from "../test/node/support/worker.ts";
import { residentBytes } from "./process-memory.ts";

type Worker = MiniflareOptions["workers"][number];

/** A workerd process. */
export type Runtime = {
  urls: readonly URL[];
  residentBytes(): number | undefined;
  /** Lines that Workers have logged, and what the runtime had to say, by how often. */
  logs: ReadonlyMap<string, number>;
  stop(): Promise<void>;
};

/** The floor: a Worker that forwards and limits nothing. */
const FORWARD = `export default {
  fetch(request, { ORIGIN_URL }) {
    const { pathname, search } = new URL(request.url);
    return fetch(new Request(ORIGIN_URL + pathname + search, request));
  },
};`;

export async function startFloor(vars: Record<string, string>): Promise<Runtime> {
  return await start(1, { "main.mjs": FORWARD }, vars);
}

export async function startWeir(
  isolates: number,
  config: ConfigInput,
  vars: Record<string, string>,
): Promise<Runtime> {
  const main = `
    import { CounterObject, defineConfig, weir } from "./weir.mjs";
    export default weir(defineConfig(${JSON.stringify(config)}));
    export { CounterObject };
  `;
  return await start(isolates, { "main.mjs": main, "weir.mjs": await weirModule() }, vars);
}

async function start(
  isolates: number,
  modules: Record<string, string>,
  vars: Record<string, string>,
): Promise<Runtime> {
  const logs = new Map<string, number>();
  const names = Array.from({ length: isolates }, (_, index) => `isolate-${index}`);
  const env = Object.fromEntries(
    Object.entries(vars).map(([key, value]) => [key, { type: "text", value }] as const),
  );
  const before = new Set(childrenNamed("workerd"));
  const runtime = new Miniflare({
    workers: names.map(
      (name): Worker => ({
        config: { ...workerConfig(name, modules), env },
        dev: { unsafeDirectSockets: [{}], stripCfConnectingIp: false },
      }),
    ),
    handleStructuredLogs: ({ message }) => logs.set(message, (logs.get(message) ?? 0) + 1),
  });
  try {
    const urls: URL[] = [];
    for (const name of names) urls.push(await runtime.unsafeGetDirectURL(name));
    const [pid] = childrenNamed("workerd").filter((child) => !before.has(child));
    return {
      urls,
      residentBytes: () => (pid === undefined ? undefined : residentBytes(pid)),
      logs,
      stop: () => runtime.dispose(),
    };
  } catch (error) {
    await runtime.dispose();
    throw error;
  }
}
