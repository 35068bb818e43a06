import * as config from "../src/config/index.ts";
import { runGuarded } from "./run-guarded.ts";
import type { BlockedReport } from "./watchdog.ts";

/** The longest time that a file may take to load, in milliseconds. */
const TIMEOUT_MS = 30_000;

/** The reason for which a file that blocks the thread cannot be loaded, and the remedy. */
export const BLOCKED = `Error: The file does not finish within ${TIMEOUT_MS / 1000} seconds. The file may contain a loop without an end or work that takes long, or this machine may be busy.`;

/**
 * The modules that exist only in a Worker, and the cure if a file uses one of their names while it is
 * loaded. A file may import them for its functions, because a check does not call these functions.
 */
const WORKER_MODULES: Readonly<Record<string, (name: string) => string>> = {
  "edge-weir": (name) =>
    name === "weir"
      ? "Here, write: export default defineConfig({ rules: [...] }); and call weir(config) in the Worker's main module."
      : name in config
        ? `Write: import { ${name} } from "edge-weir/config";`
        : `Use ${name} only in functions.`,
  "cloudflare:workers": (name) =>
    `Use ${name} only in functions, or use the argument { env, ctx } of a function.`,
};

/**
 * Loads a module in JavaScript or TypeScript, on any Node that the package supports, and returns its
 * exports. Each call runs the module again.
 *
 * An import of `edge-weir/config` always loads the copy of this command. So the project needs no copy
 * of its own, and one version both checks the file and reads its faults.
 *
 * @param path an absolute path
 * @param timeoutMs the longest time to wait, in milliseconds
 * @param blocked the report to print if the module blocks the thread for longer. No error can be thrown
 *   then, so the process ends
 * @throws the error that reading or running the file throws
 */
export async function loadModule(
  path: string,
  timeoutMs: number = TIMEOUT_MS,
  blocked: BlockedReport = { text: BLOCKED, descriptor: 2 },
): Promise<object> {
  // A JSON document needs no loader, so the loader is imported only here.
  const { createJiti } = await import("jiti");
  const jiti = createJiti(path, {
    // The cache would keep copies of the file, which may contain secrets, in a folder of its own.
    fsCache: false,
    moduleCache: false,
    tsconfigPaths: true,
    // Errors have the line of the source.
    transformOptions: { retainLines: true },
    virtualModules: {
      "edge-weir/config": exactly(
        config,
        (name) => `edge-weir/config does not export ${name}. It exports ${namesOf(config)}.`,
      ),
      ...Object.fromEntries(
        Object.entries(WORKER_MODULES).map(([id, cure]) => [id, unavailable(id, cure)]),
      ),
    },
  });
  return await runGuarded(() => jiti.import<object>(path), {
    subject: "The file",
    unsettled: "The file awaits a promise that does not settle. Remove this await.",
    timeoutMs,
    blocked,
  });
}

function namesOf(module: object): string {
  return Object.keys(module).sort().join(", ");
}

function unavailable(id: string, cure: (name: string) => string): object {
  return exactly({}, (name) => `The module ${id} works only in a Worker. ${cure(name)}`);
}

/**
 * Returns a module that throws an error if a file uses a name that the module does not export.
 * Otherwise the name would be undefined, and the file would fail later with a less clear error.
 */
function exactly(module: object, explain: (name: string) => string): object {
  // The loader reads these names from every module.
  const isOptional = (name: string | symbol) =>
    typeof name === "symbol" || name === "default" || name === "then";
  return new Proxy(Object.assign({ __esModule: true }, module), {
    // The loader reads a name only if the module has it.
    has: (target, name) => name in target || !isOptional(name),
    get(target, name) {
      if (name in target || isOptional(name)) return Reflect.get(target, name);
      throw new TypeError(explain(String(name)));
    },
  });
}
