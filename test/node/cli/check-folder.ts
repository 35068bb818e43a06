import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { checkConfig, textReport } from "../../../cli/check/run-check.ts";
import { temporaryFolder } from "./run-weir.ts";

/** The texts of files, by their names. */
export type Files = Readonly<Record<string, string>>;

/** The name of the file with the rules, unless a test has its own. */
export const RULES = "rules.json";

/** A Worker that forwards requests and has the counters' class. */
export const WORKER = `import { weir } from "edge-weir";
import config from "./rules.json";
export { ControlObject, CounterObject } from "edge-weir";
export default weir(config);
`;

/** The first lines of a wrangler.toml. */
export const HEAD = `name = "shop"
main = "worker.ts"
compatibility_date = "2026-11-01"
workers_dev = false
`;

/** The tables of a wrangler.toml that bind the counters. */
export const COUNTERS = `[[durable_objects.bindings]]
name = "COUNTERS"
class_name = "CounterObject"

[exports.CounterObject]
type = "durable-object"
storage = "sqlite"
`;

/** The tables of a wrangler.toml that bind the statistics and the overrides, beside {@link COUNTERS}. */
export const CONTROL = `[[durable_objects.bindings]]
name = "WEIR_CONTROL"
class_name = "ControlObject"

[exports.ControlObject]
type = "durable-object"
storage = "sqlite"
`;

/**
 * Checks the files of a new folder in this process.
 *
 * @param variables the environment variables of the check
 */
export async function checkFolder(
  files: Files,
  options: { readonly config?: string; readonly env?: string } = {},
  variables: NodeJS.ProcessEnv = {},
) {
  await using folder = await temporaryFolder();
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder.path, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  const config = join(folder.path, options.config ?? RULES);
  const result = await checkConfig({ ...options, config }, variables);
  const { error, rules, findings, note } = result;
  return { ...result, text: error ?? textReport(RULES, rules, findings, note) };
}
