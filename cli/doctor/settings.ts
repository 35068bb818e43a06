import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { parseEnv } from "node:util";

/** A value, and the place that it comes from. */
export interface Setting {
  readonly value: string;
  /** The environment variable, or the name of the file. */
  readonly source: string;
}

/** Looks up a var or a secret of one environment. Returns undefined if it is not set. */
export type Settings = (name: string) => Setting | undefined;

interface Source {
  readonly label: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** wrangler's configuration cannot be read, for example because it has no such environment. */
export class SettingsError extends Error {}

const WRANGLER_FILES = ["wrangler.json", "wrangler.jsonc", "wrangler.toml"];

/**
 * Reads the vars and secrets of an environment. The order is:
 *
 * 1. the environment variables of this process;
 * 2. `.dev.vars.NAME` or, if it is missing, `.dev.vars` or, if both are missing, the `.env` files,
 *    as wrangler reads them;
 * 3. the vars in wrangler's configuration.
 *
 * @param file the path of the configuration; all files are in its folder
 * @param environment the environment of wrangler's configuration; undefined for the top level
 * @throws {SettingsError} if wrangler's configuration cannot be read
 */
export async function readSettings(
  file: string,
  environment: string | undefined,
): Promise<Settings> {
  const folder = dirname(file);
  const sources = [
    { label: "the environment", values: process.env },
    ...secretFiles(folder, environment),
    ...(await wranglerVars(folder, environment)),
  ];
  return (name) => {
    for (const { label, values } of sources) {
      const value = Object.hasOwn(values, name) ? values[name] : undefined;
      if (typeof value === "string" && value.trim() !== "") {
        return { value: value.trim(), source: label };
      }
    }
    return undefined;
  };
}

/** Returns the files with local secrets. The file with the highest priority comes first. */
function secretFiles(folder: string, environment: string | undefined): Source[] {
  const exists = (name: string) => existsSync(join(folder, name));
  const names = environment === undefined ? [] : [`.dev.vars.${environment}`];
  const devVars = [...names, ".dev.vars"].find(exists);
  const chosen = devVars === undefined ? dotEnvNames(environment).filter(exists) : [devVars];
  return chosen.map((name) => {
    try {
      return { label: name, values: parseEnv(readFileSync(join(folder, name), "utf8")) };
    } catch (error) {
      throw new SettingsError(`${name} could not be read: ${(error as Error).message}`);
    }
  });
}

function dotEnvNames(environment: string | undefined): string[] {
  const own = environment === undefined ? [] : [`.env.${environment}.local`, `.env.${environment}`];
  return [...own, ".env.local", ".env"];
}

async function wranglerVars(folder: string, environment: string | undefined): Promise<Source[]> {
  const path = WRANGLER_FILES.map((name) => join(folder, name)).find(existsSync);
  if (path === undefined) {
    if (environment === undefined) return [];
    throw new SettingsError(
      `--env ${environment} needs wrangler's configuration, but ${folder} has no wrangler.toml, wrangler.json or wrangler.jsonc.`,
    );
  }
  const config = await readWrangler(path, environment);
  const environments = config.definedEnvironments ?? [];
  if (environment !== undefined && !environments.includes(environment)) {
    const known = environments.length > 0 ? `It has: ${environments.join(", ")}.` : "It has none.";
    throw new SettingsError(`${basename(path)} has no environment "${environment}". ${known}`);
  }
  const where = environment === undefined ? "" : `, env.${environment}`;
  return [{ label: `${basename(path)}${where}: vars`, values: config.vars }];
}

async function readWrangler(path: string, environment: string | undefined) {
  try {
    // wrangler is imported only if needed, because loading it takes longer than all other work.
    const { unstable_readConfig } = await import("wrangler");
    const options = { config: path, ...(environment !== undefined && { env: environment }) };
    return unstable_readConfig(options, { hideWarnings: true });
  } catch (error) {
    // The first line of wrangler's message names only the file, so the next lines are needed too.
    const message = error instanceof Error ? error.message : String(error);
    const reason = message.split("\n").slice(0, 3).join(" ").replace(/\s+/g, " ").trim();
    throw new SettingsError(
      `${basename(path)} could not be read: ${reason}. Correct the file, or run npm install if wrangler is not installed.`,
    );
  }
}
