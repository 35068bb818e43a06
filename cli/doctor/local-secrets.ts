import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "dotenv";
import { expand } from "dotenv-expand";
import { CommandFailure } from "../command-failure.ts";

/** Values from one place. */
export interface Source {
  /** Returns where the value of a variable comes from: the name of a file or of another place. */
  label(name: string): string;
  readonly values: Readonly<Record<string, unknown>>;
}

/**
 * Reads the local secrets in a folder as `wrangler dev` reads them, with the same two packages:
 * `.dev.vars.NAME`, or `.dev.vars` if it is missing, or the `.env` files if both are missing.
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

/** A value of a later file replaces the value of an earlier file, also if it is empty. */
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
