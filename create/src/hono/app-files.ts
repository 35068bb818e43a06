import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse as parseJsonc } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import { Failure } from "../failure.ts";

/** A file of the app that the starter may change. Some editors on Windows write a byte order mark before its text. */
export interface AppFile {
  /** Relative to the app's folder. */
  readonly path: string;
  readonly text: string;
  readonly mark?: string;
}

/** The result of adding something to a file. */
export interface Edit {
  readonly text: string;
  /** One line for each change; empty if the text is the old one. */
  readonly changes: readonly string[];
  /** The steps without which Weir does not limit requests, and which the starter could not take safely. */
  readonly byHand: readonly string[];
  /** Useful steps that Weir does not need to limit requests. */
  readonly advice: readonly string[];
}

/** A Hono app on Cloudflare Workers. */
export interface HonoApp {
  readonly folder: string;
  readonly manifest: AppFile;
  readonly wrangler: AppFile;
  /** The file that wrangler's `main` names. */
  readonly entry: AppFile;
}

/**
 * Whether a folder has a Hono app, as far as package.json and wrangler's configuration show it. A project that this
 * starter created is no such app, even if it lists hono.
 */
export async function isHonoApp(folder: string): Promise<boolean> {
  try {
    const { entry } = await readHonoApp(folder);
    return !/\bimport\s*\{[^}]*\bweir\b[^}]*\}\s*from\s*["']edge-weir["']/.test(entry.text);
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}

/** @throws {Failure} if a file is missing, or if it cannot be read */
export async function readHonoApp(folder: string): Promise<HonoApp> {
  const manifest = demand(
    await readText(folder, "package.json"),
    `The folder ${folder} has no package.json. Run this command in the folder of a Hono app, or create one with npm create hono@latest.`,
  );
  const { dependencies, devDependencies } = parseSettings(manifest) as Record<string, object>;
  demand(
    "hono" in { ...dependencies, ...devDependencies } || undefined,
    `${join(folder, manifest.path)} does not list hono in dependencies. Run this command in the folder of a Hono app.`,
  );
  // wrangler looks for the names in this order.
  const names = ["wrangler.json", "wrangler.jsonc", "wrangler.toml"];
  const found = await Promise.all(names.map((name) => readText(folder, name)));
  const wrangler = demand(
    found.find((file) => file !== undefined),
    `The folder ${folder} has no wrangler.jsonc, wrangler.json or wrangler.toml. Weir runs in Hono apps on Cloudflare Workers.`,
  );
  const { main } = parseSettings(wrangler);
  const path = demand(
    typeof main === "string" ? main : undefined,
    `${wrangler.path} has no field "main". Set it to the file that exports the app.`,
  );
  const entry = demand(
    await readText(folder, path.replace(/^\.\//, "")),
    `${wrangler.path}: there is no file ${path}, which "main" names.`,
  );
  return { folder, manifest, wrangler, entry };
}

function demand<Value>(value: Value | undefined, fault: string): Value {
  if (value === undefined) throw new Failure(fault);
  return value;
}

/** Parses a file in JSON or TOML. @throws {Failure} with the fault and its place */
export function parseSettings({ path, text }: AppFile): Record<string, unknown> {
  try {
    return path.endsWith(".toml") ? parseToml(text) : parseJson(text);
  } catch (error) {
    throw new Failure(`${path} cannot be read: ${(error as Error).message}`);
  }
}

function parseJson(text: string): Record<string, unknown> {
  const errors: { offset: number }[] = [];
  const value = parseJsonc(text, errors as never, { allowTrailingComma: true });
  for (const { offset } of errors) {
    throw new SyntaxError(`line ${text.slice(0, offset).split("\n").length} is not JSON`);
  }
  if (value?.constructor !== Object) throw new SyntaxError("the file has no object");
  return value;
}

/** Reads a file; undefined if there is no such file. */
export async function readText(folder: string, path: string): Promise<AppFile | undefined> {
  try {
    const [, mark = "", text = ""] =
      /^(\uFEFF?)(.*)$/s.exec(await readFile(join(folder, path), "utf8")) ?? [];
    return { path, text, mark };
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (["ENOENT", "ENOTDIR", "EISDIR"].includes(code)) return undefined;
    throw error;
  }
}
