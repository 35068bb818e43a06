import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileFailure } from "../file-failure.ts";
import { templateConfig } from "../new-project.ts";
import { NODE_20, toolchainFor } from "../versions.ts";
import { configImport } from "./config-import.ts";
import type { Edit } from "./edit.ts";
import { editEntry } from "./edit-entry.ts";
import { editManifest } from "./edit-manifest.ts";
import { editWrangler } from "./edit-wrangler.ts";
import { type AppFile, MARK, parseSettings, readHonoApp } from "./hono-app.ts";

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
 * Adds Weir to a Hono app: the package, the rules, the middleware, and the Durable Objects with the
 * counters and with the statistics. A second call changes nothing. If a file cannot be written, all files keep
 * their old texts.
 *
 * @throws {Failure} if the folder has no such app, or if its settings contradict Weir's
 */
export async function addToHonoApp(
  folder: string,
  options: { readonly edgeWeir: string; readonly nodeVersion: string },
): Promise<AppChanges> {
  const app = await readHonoApp(folder);
  const usesVite = app.manifest.text.includes('"@cloudflare/vite-plugin"');
  const entry = editEntry(app.entry, await configImport(app));
  const edits = new Map<string, Edit>([
    [app.manifest.path, editManifest(app.manifest, options.edgeWeir, options.nodeVersion)],
    [app.wrangler.path, editWrangler(app.wrangler, !usesVite, entry.classes)],
    [app.entry.path, entry],
  ]);
  const before = new Map<string, AppFile | undefined>(
    [app.manifest, app.wrangler, app.entry].map((file) => [file.path, file]),
  );
  const existing = await readFile(join(folder, CONFIG), "utf8").catch(() => undefined);
  if (existing === undefined) {
    const template = await templateConfig();
    const text = app.entry.text.includes("\r\n") ? template.replace(/\r?\n/g, "\r\n") : template;
    const changes = ["new: two rules to begin with"];
    edits.set(CONFIG, { text, changes, byHand: [], advice: [] });
    before.set(CONFIG, undefined);
  }
  const { compatibilityDate: newest } = NODE_20;
  const { compatibility_date: date } = parseSettings(app.wrangler);
  const isNode20 = toolchainFor(options.nodeVersion) === NODE_20;
  const tooNew = isNode20 && String(date ?? "") > newest;
  await replaceFiles(folder, edits, before);
  const all = [...edits.values()];
  const byHand = all.flatMap((edit) => edit.byHand);
  const advice = all.flatMap((edit) => edit.advice);
  if (tooNew) {
    advice.push(
      `${app.wrangler.path}: compatibility_date: set it to "${newest}", because the wrangler for Node 20 does not run with "${date}"`,
    );
  }
  if (usesVite) {
    advice.push(
      'package.json: Vite runs no command of wrangler, so run "npx weir check" before each deploy',
    );
  }
  return {
    report: reportOf(edits, byHand, advice),
    hasChanged: all.some(({ changes }) => changes.length > 0),
    needsHand: byHand.length > 0,
    devUrl: usesVite ? "http://localhost:5173" : "http://localhost:8787",
  };
}

/**
 * Writes the edited files. If one cannot be written, restores all of them.
 *
 * @throws {Failure} for an error of the file system, with the files that could not be restored
 */
async function replaceFiles(
  folder: string,
  edits: ReadonlyMap<string, Edit>,
  before: ReadonlyMap<string, AppFile | undefined>,
): Promise<void> {
  const written: string[] = [];
  try {
    for (const [path, { text, changes }] of edits) {
      if (changes.length === 0) continue;
      written.push(path);
      await writeFile(join(folder, path), withMark(text, before.get(path)));
    }
  } catch (error) {
    const lost: string[] = [];
    for (const path of written) {
      const file = before.get(path);
      const target = join(folder, path);
      const restored = file ? writeFile(target, withMark(file.text, file)) : rm(target);
      // A folder that stands where weir.config.ts would be is not Weir's.
      await restored.catch(() => file && lost.push(path));
    }
    const outcome =
      lost.length === 0
        ? "All files have their old contents again."
        : `The old contents of ${lost.join(" and ")} could not be restored.`;
    throw fileFailure(error, outcome);
  }
}

function withMark(text: string, file: AppFile | undefined): string {
  return file?.hasMark ? MARK + text : text;
}

function reportOf(
  edits: ReadonlyMap<string, Edit>,
  byHand: readonly string[],
  advice: readonly string[],
): string {
  const lines = [...edits].flatMap(([path, { changes }]) =>
    changes.length === 0 ? [] : [path, ...changes.map((change) => `  ${change}`)],
  );
  const nothing =
    byHand.length === 0 ? "The files have everything that Weir needs already." : "Changed no file.";
  return [
    ...(lines.length === 0 ? [nothing] : lines),
    ...section("Left to you, before Weir limits requests:", byHand),
    ...section("Also useful:", advice),
  ].join("\n");
}

function section(title: string, steps: readonly string[]): string[] {
  if (steps.length === 0) return [];
  return ["", title, ...steps.map((step) => `  ${step.replaceAll("\n", "\n    ")}`)];
}
