import { readFile, stat } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { formatCount } from "../src/admin/format.ts";
import {
  type ConfigError,
  defineConfig,
  faultsIn,
  inputOf,
  isConfig,
} from "../src/config/define.ts";
import type { Fault } from "../src/config/faults.ts";
import * as config from "../src/config/index.ts";
import type { Config, ConfigInput } from "../src/config/schema.ts";
import { CommandFailure } from "./command-failure.ts";
import { explainLoadError, parseJson, textError } from "./load-error.ts";
import { runGuarded, withoutNodeEnv } from "./process.ts";

/** The longest time that a file may take to load, in milliseconds. */
const TIMEOUT_MS = 30_000;

/**
 * The modules that exist only in a Worker. A file may import them for its functions, which a check does not call. If
 * the file uses an export of a module while it loads, the module's function returns the cure.
 */
const WORKER_MODULES: Readonly<Record<string, (name: string) => string>> = {
  "edge-weir": (name) =>
    name in config
      ? `Write: import { ${name} } from "edge-weir/config";`
      : `Use ${name} only in functions.`,
  "cloudflare:workers": (name) =>
    `Use ${name} only in functions, or use the argument { env, ctx } of a function.`,
};

/**
 * Loads a module in JavaScript or TypeScript, on any Node that the package supports, and returns its exports. Each
 * call runs the module again.
 *
 * An import of `edge-weir/config` always loads the command's own copy. So the project needs no copy, and one version
 * both checks the file and reads its faults.
 *
 * @param path an absolute path
 * @param timeoutMs the longest time to wait, in milliseconds
 * @throws the error that reading or running the file throws
 */
export async function loadModule(path: string, timeoutMs = TIMEOUT_MS): Promise<object> {
  // A JSON document needs no loader, so the loader is imported only here.
  const { createJiti } = await import("jiti");
  const jiti = createJiti(path, {
    // The cache would keep copies of the file on disk, although the file may contain secrets.
    fsCache: false,
    moduleCache: false,
    tsconfigPaths: true,
    // Errors then have the lines of the source.
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
  });
}

function namesOf(module: object): string {
  return Object.keys(module).sort().join(", ");
}

function unavailable(id: string, cure: (name: string) => string): object {
  return exactly({}, (name) => `The module ${id} works only in a Worker. ${cure(name)}`);
}

/**
 * Returns a module that throws an error if a file uses a name that the module does not export. Otherwise, the file
 * would fail later with a less clear error.
 */
function exactly(module: object, explain: (name: string) => string): object {
  // The loader reads these names from every module.
  const isOptional = (name: string | symbol) =>
    typeof name === "symbol" || name === "default" || name === "then";
  return new Proxy(Object.assign({ __esModule: true }, module), {
    // The loader calls `get` only for names that `has` accepts.
    has: (target, name) => name in target || !isOptional(name),
    get(target, name) {
      if (name in target || isOptional(name)) return Reflect.get(target, name);
      throw new TypeError(explain(String(name)));
    },
  });
}

/** The result of reading the file of a configuration. */
export type LoadedConfig =
  | { readonly kind: "valid"; readonly config: Config }
  | { readonly kind: "faulty"; readonly faults: readonly Fault[] }
  /**
   * The file has no configuration to check. `error` gives the reason and the remedy; `throws` says whether the file's
   * own code threw the error.
   */
  | { readonly kind: "unreadable"; readonly error: string; readonly throws?: boolean };

const EXTENSIONS = [".ts", ".mts", ".cts", ".js", ".mjs", ".cjs", ".json"];

/** Matches errors that occur before the file's code runs: wrong syntax and wrong imports. */
const NOT_THROWN = /^(SyntaxError|\w*Error: Cannot find (module|package))\b/;

const NO_DEFAULT =
  "The file has no default export. Write: export default defineConfig({ rules: [...] });";

/**
 * Reads and checks a configuration: the default export of a module, or a JSON document. Each call
 * reads the file again.
 *
 * @param file a path, relative to the current directory
 * @param option the option that names the file, for messages
 */
export async function loadConfig(file: string, option = "--config"): Promise<LoadedConfig> {
  const fault = await pathFault(file, option);
  if (fault) return { kind: "unreadable", error: fault };
  try {
    const module = await read(resolve(file));
    if (!("default" in module)) return { kind: "unreadable", error: NO_DEFAULT };
    const { default: exported } = module;
    // A plain object, exported without `defineConfig`, is checked here.
    const config = isConfig(exported) ? exported : defineConfig(exported as ConfigInput);
    return { kind: "valid", config };
  } catch (error) {
    if (isConfigError(error)) return { kind: "faulty", faults: await explainedFaults(error) };
    const explanation = explainLoadError(error);
    return { kind: "unreadable", error: explanation, throws: !NOT_THROWN.test(explanation) };
  }
}

/**
 * Returns why a path cannot be the file of a configuration, without reading the file.
 */
async function pathFault(file: string, option: string): Promise<string | undefined> {
  const stats = await stat(file).catch(() => undefined);
  if (!stats) {
    return `There is no such file. Run the command in the folder of the file, or name the file with ${option} <file>.`;
  }
  if (!stats.isFile()) return `This is not a file. Name the file itself with ${option} <file>.`;
  if (!EXTENSIONS.includes(extname(file))) {
    return `The name of the file does not end in one of ${EXTENSIONS.join(", ")}.`;
  }
  return undefined;
}

async function read(path: string): Promise<object> {
  if (extname(path) === ".json") return { default: await parseJson(await readFile(path, "utf8")) };
  const module = await loadModule(path);
  // A .cts file may set module.exports, which is its default export for wrangler.
  const isCommonJs = !("default" in module) && extname(path) === ".cts";
  return isCommonJs ? { default: module } : module;
}

/**
 * Returns the faults with their cures. If a build server has set `NODE_ENV` to `production`, the error
 * itself has only short faults.
 */
async function explainedFaults(error: ConfigError): Promise<readonly Fault[]> {
  const faults = await withoutNodeEnv(() => faultsIn(inputOf(error)));
  // An error from another version of Weir may have no input, or one that is valid in this version.
  return inputOf(error) === undefined || faults.length === 0 ? error.faults : faults;
}

/**
 * Checks the error's fields and not its class, because the file may import another copy of Weir,
 * which has its own class.
 */
function isConfigError(error: unknown): error is ConfigError {
  return (
    error instanceof Error &&
    error.name === "ConfigError" &&
    "faults" in error &&
    Array.isArray(error.faults)
  );
}

/** How many faults of a configuration a command prints. Only `weir check` prints all. */
const LISTED_FAULTS = 5;

/**
 * Reads a configuration that a command needs.
 *
 * @param option the option that names the file, for messages
 * @throws {CommandFailure} if it has faults, or if its file cannot be read
 */
export async function requireConfig(
  file: string,
  option: "--config" | "--against" = "--config",
): Promise<Config> {
  const loaded = await loadConfig(file, option);
  if (loaded.kind === "valid") return loaded.config;
  if (loaded.kind === "unreadable") throw new CommandFailure(2, textError(file, loaded.error));
  const { faults } = loaded;
  const listed = faults.slice(0, LISTED_FAULTS).map(({ path, message }) => `  ${path}: ${message}`);
  const more = faults.length > LISTED_FAULTS ? [`  and ${faults.length - LISTED_FAULTS} more`] : [];
  throw new CommandFailure(
    2,
    [
      `${file} has ${formatCount(faults.length, "fault")}. weir check --config ${file} explains them.`,
      ...listed,
      ...more,
    ].join("\n"),
  );
}
