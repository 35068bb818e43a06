import { startWorkerd, weirModule, workerConfig } from "../../../dev/workerd.ts";

/** The Workers of a page, in one workerd. */
export interface PageWorkers extends AsyncDisposable {
  /** The address of each Worker, by its name. */
  readonly urls: ReadonlyMap<string, URL>;
  /** The lines that the Workers have logged. */
  readonly log: readonly string[];
}

/**
 * Starts a Worker for each configuration, in front of an origin. The Workers count in Durable Objects.
 *
 * @param rules the code of the rules in each configuration, by a name of `a-z 0-9 -`
 */
export async function startPageWorkers(
  rules: ReadonlyMap<string, string>,
  origin: string,
): Promise<PageWorkers> {
  const weir = await weirModule();
  const workers = [...rules].map(([name, code]) => {
    const main = `
      import { defineConfig, weir } from "./weir.mjs";
      export { CounterObject } from "./weir.mjs";
      // A busy machine may take longer than the default of a second.
      export default weir(defineConfig({ timeoutMs: 30_000, rules: [${code}] }));
    `;
    const env = {
      ORIGIN_URL: { type: "text", value: origin },
      COUNTERS: { type: "durable-object", worker: name, exportName: "CounterObject" },
    } as const;
    const exports = { CounterObject: { type: "durable-object", storage: "sqlite" } } as const;
    const config = workerConfig(name, { "main.mjs": main, "weir.mjs": weir });
    return { config: { ...config, env, exports } };
  });
  const log: string[] = [];
  const onLog = ({ message }: { message: string }) => void log.push(message);
  const workerd = await startWorkerd(workers, { onLog });
  const urls = new Map([...rules.keys()].map((name, at) => [name, workerd.urls[at] as URL]));
  return { urls, log, [Symbol.asyncDispose]: workerd.stop };
}
