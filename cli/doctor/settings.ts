import { readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parse } from "dotenv";
import { expand } from "dotenv-expand";
import { textVar } from "../../src/config/bindings.ts";
import { CommandFailure } from "../command-failure.ts";
import { loadDeployments } from "../deployment/deployment.ts";
import { selectEnvironments } from "../deployment/environment.ts";
import { findWranglerFile } from "../deployment/wrangler-file.ts";

/** A value and its place. */
export interface Setting<Value = string> {
  readonly value: Value;
  /** The environment variable, or the name of the file. */
  readonly source: string;
}

/** Looks up the vars and secrets of one environment. */
export interface Settings {
  /** Returns a text as the Worker reads it; undefined if it is not set, blank or no text. */
  (name: string): Setting | undefined;
  /** Returns a value without conversion, such as a number in `vars`. */
  raw(name: string): Setting<unknown> | undefined;
}

/**
 * Reads the vars and secrets of an environment. The order is:
 *
 * 1. the environment variables of this process that are not blank;
 * 2. the first of `.dev.vars.NAME`, `.dev.vars` and the `.env` files that exists, as wrangler reads them;
 * 3. the vars in wrangler's configuration.
 *
 * @param file the path of Weir's configuration
 * @param option the value of `--env`: an environment of wrangler's configuration, or `""` for the top level. If it is
 *   undefined, CLOUDFLARE_ENV names the environment
 * @param wrangler the path of wrangler's configuration; by default, the file that `weir check` reads
 * @throws {CommandFailure} if wrangler's configuration cannot be read
 */
export async function readSettings(
  file: string,
  option: string | undefined,
  wrangler: string | undefined = findWranglerFile(file),
): Promise<Settings> {
  const selection = selectEnvironments(option, process.env);
  const environment = selection.environment || undefined;
  // Comes before the local files, because it checks the environment, and their names contain it.
  const vars = await wranglerVars(file, wrangler, environment);
  const sources: Source[] = [
    { label: () => "the environment", values: withoutBlanks(process.env) },
    ...localSecrets(dirname(wrangler ?? file), environment, process.env),
    ...vars,
  ];
  const raw = (name: string) => {
    const source = sources.find(({ values }) => Object.hasOwn(values, name));
    return source && { value: source.values[name], source: source.label(name) };
  };
  const lookUp = (name: string) => {
    const found = raw(name);
    const value = found && textVar({ [name]: found.value }, name);
    return value === undefined ? undefined : { value, source: found?.source ?? "" };
  };
  return Object.assign(lookUp, { raw });
}

/** A blank environment variable counts as not set, because build servers set such variables. */
function withoutBlanks(variables: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(variables).filter(([, value]) => value?.trim()));
}

async function wranglerVars(
  file: string,
  path: string | undefined,
  environment: string | undefined,
): Promise<Source[]> {
  if (path === undefined) {
    if (environment === undefined) return [];
    throw new CommandFailure(
      2,
      `The environment ${environment} needs wrangler's configuration, but there is no wrangler.toml, wrangler.json or wrangler.jsonc beside ${file} or in this folder. Name the file with --wrangler.`,
    );
  }
  const read = await loadDeployments(file, path);
  if ("fault" in read) {
    const { message, cure } = read.fault;
    throw new CommandFailure(2, `${basename(path)}: ${message}. ${cure}.`);
  }
  const deployment = read.deployments.find((each) => each.environment === environment);
  if (!deployment) {
    const names = read.deployments.flatMap((each) => each.environment ?? []);
    const known = names.length > 0 ? `It has: ${names.join(", ")}.` : "It has none.";
    throw new CommandFailure(2, `${basename(path)} has no environment "${environment}". ${known}`);
  }
  const where = environment === undefined ? "" : `, env.${environment}`;
  return [{ label: () => `${basename(path)}${where}: vars`, values: deployment.vars }];
}

/** Values from one place. */
export interface Source {
  /** Returns the place of a variable, such as the name of a file. */
  label(name: string): string;
  readonly values: Readonly<Record<string, unknown>>;
}

/**
 * Reads the local secrets in a folder as `wrangler dev` reads them, with the same two packages: the first of
 * `.dev.vars.NAME`, `.dev.vars` and the `.env` files that exists.
 *
 * @param folder the folder of wrangler's configuration
 * @param environment the environment of wrangler's configuration; undefined for the top level
 * @throws {CommandFailure} if a file cannot be read
 */
export function localSecrets(
  folder: string,
  environment: string | undefined,
  variables: NodeJS.ProcessEnv,
): Source[] {
  const own = environment === undefined ? [] : [`.dev.vars.${environment}`];
  for (const name of [...own, ".dev.vars"]) {
    const values = readVars(folder, name);
    if (values) return [{ label: () => name, values }];
  }
  if (variables.CLOUDFLARE_LOAD_DEV_VARS_FROM_DOT_ENV?.toLowerCase() === "false") return [];
  return dotEnvFiles(folder, environment);
}

/** A value of a later file, even an empty one, replaces the value of an earlier file. */
function dotEnvFiles(folder: string, environment: string | undefined): Source[] {
  const own = environment === undefined ? [] : [`.env.${environment}`, `.env.${environment}.local`];
  const values: Record<string, string> = {};
  const origins = new Map<string, string>();
  for (const name of [".env", ".env.local", ...own]) {
    for (const [key, value] of Object.entries(readVars(folder, name) ?? {})) {
      values[key] = value;
      origins.set(key, name);
    }
  }
  // Without `processEnv`, the package would write the values into the environment of this process.
  const expanded = expand({ parsed: values, processEnv: {} }).parsed ?? values;
  return [{ label: (key) => origins.get(key) ?? ".env", values: expanded }];
}

/** @returns undefined if there is no such file */
function readVars(folder: string, name: string): Record<string, string> | undefined {
  try {
    return parse(readFileSync(join(folder, name), "utf8"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new CommandFailure(2, `${name} could not be read: ${(error as Error).message}`);
  }
}
