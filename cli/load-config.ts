import { readFile, stat } from "node:fs/promises";
import { extname, resolve } from "node:path";
import {
  type ConfigError,
  defineConfig,
  faultsIn,
  inputOf,
  isConfig,
} from "../src/config/define.ts";
import type { Fault } from "../src/config/faults.ts";
import type { Config, ConfigInput } from "../src/config/schema.ts";
import { explainLoadError, parseJson } from "./load-error.ts";
import { BLOCKED, loadModule } from "./load-module.ts";
import { withoutNodeEnv } from "./node-env.ts";
import { jsonError, textError } from "./report-error.ts";
import type { BlockedReport } from "./watchdog.ts";

/** The result of reading the file of a configuration. */
export type LoadedConfig =
  | { readonly kind: "valid"; readonly config: Config }
  | { readonly kind: "faulty"; readonly faults: readonly Fault[] }
  /**
   * The file has no configuration to check. `error` gives the reason and the remedy. `throws` is true
   * if the code of the file threw the error.
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
 * @param format the format of the report if the file blocks this process, which then ends
 * @param exitCode the exit code if the file blocks this process
 * @param option the option that names the file, for messages
 */
export async function loadConfig(
  file: string,
  format: "json" | "text" = "text",
  exitCode: 1 | 2 = 1,
  option = "--config",
): Promise<LoadedConfig> {
  const fault = await pathFault(file, option);
  if (fault) return { kind: "unreadable", error: fault };
  try {
    const module = await read(resolve(file), { ...blockedReport(file, format), exitCode });
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
 * Returns the reason why a path cannot be the file of a configuration. It does not read the file.
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

function blockedReport(file: string, format: "json" | "text"): BlockedReport {
  return format === "json"
    ? { text: jsonError(file, BLOCKED), descriptor: 1 }
    : { text: textError(file, BLOCKED), descriptor: 2 };
}

async function read(path: string, blocked: BlockedReport): Promise<object> {
  if (extname(path) === ".json") return { default: parseJson(await readFile(path, "utf8")) };
  const module = await loadModule(path, undefined, blocked);
  // Such a file may set module.exports, which is its default export for wrangler.
  const isCommonJs = !("default" in module) && extname(path) === ".cts";
  return isCommonJs ? { default: module } : module;
}

/**
 * Returns the faults with their cures. If a build server has set `NODE_ENV` to `production`, the error
 * itself has only short faults.
 */
async function explainedFaults(error: ConfigError): Promise<readonly Fault[]> {
  const faults = await withoutNodeEnv(() => faultsIn(inputOf(error)));
  // An error from another version of Weir has no input, or its input is valid in this version.
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
