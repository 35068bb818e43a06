import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { parseJson } from "../load-error.ts";

/** A table of wrangler's configuration. Its values are not checked. */
export type Table = Readonly<Record<string, unknown>>;

/** The file names of wrangler's configuration, in the order in which wrangler looks for them. */
const NAMES = ["wrangler.json", "wrangler.jsonc", "wrangler.toml"];

/**
 * Finds wrangler's configuration in the folder of Weir's configuration. Otherwise, looks in the current folder, if
 * Weir's configuration is anywhere below it.
 *
 * @param file the path of Weir's configuration
 */
export function findWranglerFile(file: string): string | undefined {
  const folder = dirname(resolve(file));
  const isInside = !relative(process.cwd(), folder).startsWith("..");
  const folders = isInside ? [folder, process.cwd()] : [folder];
  return folders.flatMap((each) => NAMES.map((name) => join(each, name))).find(existsSync);
}

/**
 * Parses a file as wrangler parses it, with the same two packages. An import of wrangler would take
 * longer than all other work of the check, and would fail if wrangler is not installed.
 *
 * @throws {SyntaxError} with the line and the column of the first error. The message quotes no text
 *   of the file, because the text may contain a secret.
 */
export async function parseWranglerFile(path: string): Promise<Table> {
  const text = await readFile(path, "utf8");
  const table = isToml(path) ? await parseToml(text) : await parseJson(text, true);
  if (!isTable(table)) throw new SyntaxError("it is not an object");
  return table;
}

async function parseToml(text: string): Promise<unknown> {
  const { parse, TomlError } = await import("smol-toml");
  try {
    return parse(text.replace(/^\uFEFF/, ""));
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const { line, column, message } = error;
    const [reason = ""] = message.replace(/^Invalid TOML document: /, "").split("\n");
    throw new SyntaxError(`${reason} (line ${line}, column ${column})`);
  }
}

/** Whether a value is an object that is not a list. */
export function isTable(value: unknown): value is Table {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value of a setting in wrangler's configuration. */
type Value = string | number | boolean | readonly string[] | Readonly<Record<string, unknown>>;

/**
 * Writes a setting in the notation of wrangler's file, so that users can copy it.
 *
 * @param file the name of wrangler's file
 * @example settingIn("wrangler.toml", "workers_dev", false) // workers_dev = false
 * @example settingIn("wrangler.jsonc", "workers_dev", false) // "workers_dev": false
 */
export function settingIn(file: string, name: string, value: Value): string {
  const shown = valueIn(file, value);
  return isToml(file) ? `${name} = ${shown}` : `${JSON.stringify(name)}: ${shown}`;
}

/** Writes a value in the notation of wrangler's file. */
export function valueIn(file: string, value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((each) => valueIn(file, each)).join(", ")}]`;
  const fields = Object.entries(value).map(([name, each]) => settingIn(file, name, each as Value));
  return `{ ${fields.join(", ")} }`;
}

export function isToml(file: string): boolean {
  return file.endsWith(".toml");
}

/**
 * Returns the command that sets a secret of a deployed Worker.
 *
 * @param name the name of the secret, or a placeholder such as `NAME`
 * @param environment the environment of wrangler's configuration; undefined for the top level
 * @example secretCommand("JWT_SECRET", "staging") // npx wrangler secret put JWT_SECRET --env staging
 */
export function secretCommand(name: string, environment: string | undefined): string {
  const option = environment === undefined ? "" : ` --env ${environment}`;
  return `npx wrangler secret put ${name}${option}`;
}
