import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse as parseJsonc } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import { Failure } from "../failure.ts";

/** A file of the app that the starter may change. */
export interface AppFile {
  /** Relative to the app's folder. */
  readonly path: string;
  /** The text without a byte order mark. */
  readonly text: string;
  /** Whether the file begins with a byte order mark, which some editors on Windows write. */
  readonly hasMark?: boolean;
}

/** A Hono app on Cloudflare Workers. */
export interface HonoApp {
  readonly folder: string;
  readonly manifest: AppFile;
  /** wrangler's configuration. Its format follows from the name. */
  readonly wrangler: AppFile;
  /** The file that wrangler's `main` names. */
  readonly entry: AppFile;
}

/** The byte order mark of UTF-8. */
export const MARK = "\uFEFF";

/** The names of wrangler's configuration, in the order in which wrangler looks for them. */
const WRANGLER_NAMES = ["wrangler.json", "wrangler.jsonc", "wrangler.toml"];

/**
 * Whether a folder has a Hono app, as far as package.json and wrangler's configuration show it. A
 * project that this starter created is no such app, although it lists hono.
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
  const manifest = await readText(folder, "package.json");
  if (!manifest) {
    throw new Failure(
      `The folder ${folder} has no package.json. Run this command in the folder of a Hono app, or create one with npm create hono@latest.`,
    );
  }
  if (!usesHono(manifest)) {
    throw new Failure(
      `${join(folder, "package.json")} does not list hono in dependencies. Run this command in the folder of a Hono app.`,
    );
  }
  const wrangler = await readWrangler(folder);
  if (!wrangler) {
    throw new Failure(
      `The folder ${folder} has no wrangler.jsonc, wrangler.json or wrangler.toml. Weir runs in Hono apps on Cloudflare Workers.`,
    );
  }
  const { main } = parseSettings(wrangler);
  if (typeof main !== "string") {
    throw new Failure(
      `${wrangler.path} has no field "main". Set it to the file that exports the app.`,
    );
  }
  const entry = await readText(folder, main.replace(/^\.\//, ""));
  if (!entry) throw new Failure(`${wrangler.path}: there is no file ${main}, which "main" names.`);
  return { folder, manifest, wrangler, entry };
}

/**
 * Parses a file in JSON or TOML.
 *
 * @throws {Failure} with the fault and its place
 */
export function parseSettings({ path, text }: AppFile): Record<string, unknown> {
  try {
    return path.endsWith(".toml") ? parseToml(text) : parseJson(text);
  } catch (error) {
    throw new Failure(`${path} cannot be read: ${(error as Error).message}`);
  }
}

/** @throws {SyntaxError} if the text is not JSON with comments and trailing commas */
export function parseJson(text: string): Record<string, unknown> {
  const errors: { offset: number }[] = [];
  const value = parseJsonc(text, errors as never, { allowTrailingComma: true });
  const [first] = errors;
  if (first) {
    const line = text.slice(0, first.offset).split("\n").length;
    throw new SyntaxError(`line ${line} is not JSON`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new SyntaxError("the file has no object");
  }
  return value;
}

function usesHono({ path, text }: AppFile): boolean {
  const { dependencies, devDependencies } = parseSettings({ path, text }) as Record<string, object>;
  return "hono" in { ...dependencies, ...devDependencies };
}

async function readWrangler(folder: string): Promise<AppFile | undefined> {
  for (const name of WRANGLER_NAMES) {
    const file = await readText(folder, name);
    if (file) return file;
  }
  return undefined;
}

/** Reads a file; undefined if there is no such file. */
export async function readText(folder: string, path: string): Promise<AppFile | undefined> {
  try {
    const text = await readFile(join(folder, path), "utf8");
    const hasMark = text.startsWith(MARK);
    return { path, text: hasMark ? text.slice(1) : text, hasMark };
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "EISDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) {
      return undefined;
    }
    throw error;
  }
}
