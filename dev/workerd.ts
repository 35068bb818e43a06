import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type BuildOptions, build, transform } from "esbuild";
import { Miniflare, type MiniflareOptions } from "miniflare";
import { parse } from "smol-toml";
import { childrenNamed } from "./process-usage.ts";

const ROOT = join(import.meta.dirname, "..");

/** The configuration of a Worker, in the form that miniflare requires. */
export type WorkerdWorker = MiniflareOptions["workers"][number];
type WorkerConfig = WorkerdWorker["config"];

/** One line that a Worker or the runtime has logged. */
export interface LogLine {
  readonly level: string;
  readonly message: string;
}

/** A workerd process with one Worker or several. */
export interface Workerd {
  /** The address of each Worker, in the order in which they were passed. */
  readonly urls: readonly URL[];
  /** The id of the process; undefined if there is no /proc, as on macOS. */
  readonly pid: number | undefined;
  stop(): Promise<void>;
}

export interface WorkerdOptions {
  /** The folder for Durable Objects and the emulated rate limiter. @default a temporary folder */
  readonly storage?: string | undefined;
  readonly onLog: (line: LogLine) => void;
}

/**
 * Starts Workers in a new workerd process. Clients connect to the Workers directly, because a proxy
 * of miniflare or wrangler would take more time than the code that is measured.
 */
export async function startWorkerd(
  workers: readonly (Omit<WorkerdWorker, "dev" | "config"> & { config: WorkerConfig })[],
  { storage, onLog }: WorkerdOptions,
): Promise<Workerd> {
  const before = new Set(childrenNamed("workerd"));
  const miniflare = new Miniflare({
    workers: workers.map((worker) => ({
      ...worker,
      dev: { unsafeDirectSockets: [{}], stripCfConnectingIp: false },
    })),
    ...(storage && { resourcePersistencePath: storage }),
    handleStructuredLogs: onLog,
  });
  try {
    const urls: URL[] = [];
    for (const { config } of workers) {
      urls.push(await miniflare.unsafeGetDirectURL(config.name as string));
    }
    const [pid] = childrenNamed("workerd").filter((child) => !before.has(child));
    return { urls, pid, stop: () => miniflare.dispose() };
  } catch (error) {
    await miniflare.dispose();
    throw error;
  }
}

/**
 * Returns the configuration of a Worker, with the compatibility settings of wrangler.toml and the
 * given modules.
 *
 * @param modules source texts by file name; `main.mjs` is the main module
 */
export function workerConfig(
  name: string,
  modules: Readonly<Record<string, string>>,
): WorkerConfig {
  // An import of wrangler would take one second of CPU time in each test file.
  const { compatibility_date, compatibility_flags = [] } = parse(
    readFileSync(join(ROOT, "wrangler.toml"), "utf8"),
  ) as { readonly compatibility_date: string; readonly compatibility_flags?: string[] };
  return {
    name,
    compatibilityDate: compatibility_date,
    compatibilityFlags: compatibility_flags,
    manifest: {
      mainModule: "main.mjs",
      modules: Object.fromEntries(
        Object.entries(modules).map(([file, contents]) => [file, { type: "esm", contents }]),
      ),
    },
  };
}

/** Bundles a Worker into one ES module for workerd, without the modules that the runtime provides. */
export async function bundleForWorkerd(
  options: Pick<BuildOptions, "entryPoints" | "stdin" | "minify">,
): Promise<string> {
  const { outputFiles } = await build({
    ...options,
    bundle: true,
    write: false,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*"],
    absWorkingDir: ROOT,
  });
  return outputFiles.map(({ text }) => text).join("");
}

/** The values of numeric constants, by the names of the constants and by the file, such as `src/gateway/log.ts`. */
export type Constants = Readonly<Record<string, Readonly<Record<string, number>>>>;

let weirBundle: Promise<string> | undefined;
/** The modules, by their constants. */
const weirModules = new Map<string, Promise<string>>();

/**
 * Returns Weir's sources, Hono, `defineConfig` and `edge-weir/llm` as one module. It serves every configuration. It is
 * bundled only once, and minified, because Miniflare copies the text of each module many times.
 *
 * @param constants values that replace constants of the sources, such as shorter intervals
 * @throws if a file does not define a constant as a number, or is not in the bundle
 */
export function weirModule(constants: Constants = {}): Promise<string> {
  weirBundle ??= bundleForWorkerd({
    stdin: {
      contents: `
        export { ControlObject, CounterObject, rateLimit, WeirService, weir } from "./src/index.ts";
        export { Hono } from "hono";
        export { defineConfig } from "./src/config/index.ts";
        export { llmReserve, llmUsage } from "./src/llm/index.ts";
      `,
      resolveDir: ROOT,
    },
  });
  const key = JSON.stringify(constants);
  const module = weirModules.get(key) ?? weirBundle.then((bundle) => minified(bundle, constants));
  weirModules.set(key, module);
  return module;
}

async function minified(bundle: string, constants: Constants): Promise<string> {
  const { code } = await transform(withConstants(bundle, constants), { minify: true });
  return code;
}

/**
 * Returns a module whose function `load(console)` returns a new {@link weirModule} at each call, as if it ran in an
 * isolate of its own. An isolate for each case would start much more slowly.
 */
export async function isolatedWeirModule(constants: Constants = {}): Promise<string> {
  const { code } = await transform(await weirModule(constants), { format: "cjs", minify: true });
  return `
    import * as workers from "cloudflare:workers";
    export function load(console) {
      const module = { exports: {} };
      ((require, module, exports) => {${code}})(() => workers, module, module.exports);
      return module.exports;
    }
  `;
}

function withConstants(bundle: string, constants: Constants): string {
  const missing = Object.entries(constants).flatMap(([file, values]) =>
    Object.keys(values).map((name) => `${name} of ${file}`),
  );
  // esbuild writes the name of each file above its code. It adds a number to a name that several files define.
  const code = bundle.replace(/^\/\/ (src\/.*)\n(?:(?!\/\/ ).*\n)*/gm, (section, file) => {
    let replaced = section;
    for (const [name, value] of Object.entries(constants[file] ?? {})) {
      replaced = replaced.replace(
        new RegExp(`^( *(?:var )?${name}\\d* = )[\\d.e]+;$`, "m"),
        (_, definition) => {
          missing.splice(missing.indexOf(`${name} of ${file}`), 1);
          return `${definition}${value};`;
        },
      );
    }
    return replaced;
  });
  if (missing.length > 0) throw new Error(`the bundle has no number ${missing.join(", ")}`);
  return code;
}
