import { readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { Failure } from "../failure.ts";
import { templateConfig } from "../new-project.ts";
import type { Edit } from "./edit.ts";
import { editEntry } from "./edit-entry.ts";
import { editManifest } from "./edit-manifest.ts";
import { editWrangler } from "./edit-wrangler.ts";
import { type HonoApp, parseJson, readHonoApp } from "./hono-app.ts";

/** The result of adding Weir to an app. */
export interface AppChanges {
  /** The changed files with their changes, and the steps that are left to the user. */
  readonly report: string;
  readonly hasChanged: boolean;
  /** Whether the user must add lines before Weir limits requests. */
  readonly needsHand: boolean;
  /** The URL of the app in development. */
  readonly devUrl: string;
}

/** The configuration that the app imports. */
const CONFIG = "weir.config.ts";

/**
 * Adds Weir to a Hono app: the package, the rules, the middleware, and the Durable Objects that
 * count. A second call changes nothing. If a file cannot be written, all files keep their old
 * texts.
 *
 * @throws {Failure} if the folder has no such app, or if its settings contradict Weir's
 */
export async function addToHonoApp(
  folder: string,
  options: { readonly edgeWeir: string; readonly nodeVersion: string },
): Promise<AppChanges> {
  const app = await readHonoApp(folder);
  const usesVite = app.manifest.text.includes('"@cloudflare/vite-plugin"');
  const edits = new Map<string, Edit>([
    [app.manifest.path, editManifest(app.manifest, options.edgeWeir, options.nodeVersion)],
    [app.wrangler.path, editWrangler(app.wrangler, !usesVite)],
    [app.entry.path, editEntry(app.entry, configImport(app))],
  ]);
  const before = new Map<string, string | undefined>(
    [app.manifest, app.wrangler, app.entry].map(({ path, text }) => [path, text]),
  );
  const existing = await readFile(join(folder, CONFIG), "utf8").catch(() => undefined);
  if (existing === undefined) {
    const text = await templateConfig();
    edits.set(CONFIG, { text, changes: ["new: two rules to begin with"], byHand: [] });
    before.set(CONFIG, undefined);
  }
  await replaceFiles(folder, edits, before);
  const byHand = [...edits.values()].flatMap((edit) => edit.byHand);
  if (usesVite)
    byHand.push(
      'package.json: Vite runs no command of wrangler, so run "npx weir check" before each deploy',
    );
  const hasChanged = [...edits.values()].some(({ changes }) => changes.length > 0);
  return {
    report: reportOf(edits, byHand),
    hasChanged,
    needsHand: (edits.get(app.entry.path)?.byHand.length ?? 0) > 0,
    devUrl: usesVite ? "http://localhost:5173" : "http://localhost:8787",
  };
}

/**
 * Returns the path by which the entry imports weir.config.ts. The extension depends on the app's
 * own imports and on tsconfig.json.
 */
function configImport({ entry, tsconfig }: HonoApp): string {
  const path = relative(dirname(entry.path), "weir.config").replaceAll("\\", "/");
  const prefixed = path.startsWith(".") ? path : `./${path}`;
  const [, extension] = /from\s*["']\.{1,2}\/[^"']*(\.[jt]s)x?["']/.exec(entry.text) ?? [];
  return `${prefixed}${extension ?? extensionFor(entry.path, tsconfig?.text)}`;
}

function extensionFor(entry: string, tsconfig: string | undefined): string {
  if (!/\.[cm]?tsx?$/.test(entry)) return ".ts";
  if (tsconfig === undefined) return "";
  try {
    const { compilerOptions = {} } = parseJson(tsconfig) as {
      compilerOptions?: { module?: string; moduleResolution?: string };
    };
    const { module = "", moduleResolution = module } = compilerOptions;
    return /^node(16|18|20|next)$/i.test(moduleResolution) ? ".js" : "";
  } catch {
    return "";
  }
}

/** Writes the edited files. If one cannot be written, restores all of them. */
async function replaceFiles(
  folder: string,
  edits: ReadonlyMap<string, Edit>,
  before: ReadonlyMap<string, string | undefined>,
): Promise<void> {
  const written: string[] = [];
  try {
    for (const [path, { text, changes }] of edits) {
      if (changes.length === 0) continue;
      written.push(path);
      await writeFile(join(folder, path), text);
    }
  } catch (error) {
    for (const path of written) {
      const text = before.get(path);
      const target = join(folder, path);
      await (text === undefined ? rm(target, { force: true }) : writeFile(target, text)).catch(
        () => {},
      );
    }
    throw new Failure(`${(error as Error).message}. All files have their old contents again.`);
  }
}

function reportOf(edits: ReadonlyMap<string, Edit>, byHand: readonly string[]): string {
  const lines = [...edits].flatMap(([path, { changes }]) =>
    changes.length === 0 ? [] : [path, ...changes.map((change) => `  ${change}`)],
  );
  const done = lines.length === 0 ? ["The app has everything that Weir needs already."] : lines;
  if (byHand.length === 0) return done.join("\n");
  const steps = byHand.map((step) => `  ${step.replaceAll("\n", "\n    ")}`);
  return [...done, "", "Left to you:", ...steps].join("\n");
}
