import { readFile, stat } from "node:fs/promises";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type ConfigError, defineConfig, isConfig } from "../src/config/define.ts";
import type { Fault } from "../src/config/faults.ts";
import type { Config, ConfigInput } from "../src/config/schema.ts";
import { explainLoadError, parseJson } from "./load-error.ts";

/** What came of reading a configuration's file. */
export type LoadedConfig =
  | { readonly kind: "valid"; readonly config: Config }
  | { readonly kind: "faulty"; readonly faults: readonly Fault[] }
  /** There was no configuration to check; `error` says why, and what to do. */
  | { readonly kind: "unreadable"; readonly error: string };

const EXTENSIONS = [".ts", ".js", ".mjs", ".json"];

const NO_DEFAULT =
  "It has no default export. Write: export default defineConfig({ rules: [...] });";

/**
 * Reads and checks a configuration: a module's default export, or a JSON document.
 *
 * @param file a path, from the current directory
 */
export async function loadConfig(file: string): Promise<LoadedConfig> {
  const obstacle = await obstacleTo(file);
  if (obstacle) return { kind: "unreadable", error: obstacle };
  try {
    const module = await read(resolve(file));
    if (!("default" in module)) return { kind: "unreadable", error: NO_DEFAULT };
    const { default: exported } = module;
    // A plain object is not to get around the check by leaving `defineConfig` out.
    const config = isConfig(exported) ? exported : defineConfig(exported as ConfigInput);
    return { kind: "valid", config };
  } catch (error) {
    if (isConfigError(error)) return { kind: "faulty", faults: error.faults };
    return { kind: "unreadable", error: explainLoadError(error, file) };
  }
}

/** What keeps a path from being read at all, as far as can be told without reading it. */
async function obstacleTo(file: string): Promise<string | undefined> {
  const stats = await stat(file).catch(() => undefined);
  if (!stats) {
    return "There is no such file. Run this where it is, or name it with --config <file>.";
  }
  if (!stats.isFile()) return "It is not a file. Name the file itself with --config <file>.";
  if (!EXTENSIONS.includes(extname(file))) {
    return `Its name does not end in one of ${EXTENSIONS.join(", ")}.`;
  }
  return undefined;
}

async function read(path: string): Promise<object> {
  if (extname(path) === ".json") return { default: parseJson(await readFile(path, "utf8")) };
  return import(pathToFileURL(path).href);
}

/** By its shape: the configuration may have imported another copy of Weir, with its own class. */
function isConfigError(error: unknown): error is Pick<ConfigError, "faults"> {
  return (
    error instanceof Error &&
    error.name === "ConfigError" &&
    "faults" in error &&
    Array.isArray(error.faults)
  );
}
