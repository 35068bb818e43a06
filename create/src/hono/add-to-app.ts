import { existsSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { type EdgeWeir, tarballFiles } from "../edge-weir.ts";
import { fileFailure } from "../failure.ts";
import { templateConfig, writeFiles } from "../new-project.ts";
import { type AppFile, type Edit, type HonoApp, readHonoApp, readText } from "./app-files.ts";
import { editEntry } from "./entry.ts";
import { editManifest, editWrangler } from "./settings.ts";

type Edits = readonly (readonly [AppFile, Edit])[];

/** The configuration that the app imports. */
const CONFIG = "weir.config.ts";

/**
 * Adds Weir to a Hono app: the package, the rules, the middleware, and the Durable Objects with the counters and with
 * the statistics. A second call changes nothing. If a file cannot be written, all files keep their old texts.
 *
 * @throws {Failure} if the folder has no such app, or if its settings contradict Weir's
 * @returns the changes with the steps that are left to the user; whether Weir needs these steps before it limits
 *   requests; and the URL of the app in development
 */
export async function addToHonoApp(folder: string, edgeWeir: EdgeWeir) {
  const app = await readHonoApp(folder);
  const usesVite = app.manifest.text.includes('"@cloudflare/vite-plugin"');
  const edits: [AppFile, Edit][] = [
    [app.manifest, editManifest(app.manifest, edgeWeir)],
    [app.wrangler, editWrangler(app.wrangler)],
    [app.entry, editEntry(app.entry, await configImport(app))],
  ];
  if (!(await readText(folder, CONFIG))) {
    const template = await templateConfig();
    const text = app.entry.text.includes("\r\n") ? template.replace(/\r?\n/g, "\r\n") : template;
    const changes = ["new: two rules to begin with"];
    edits.push([
      { path: CONFIG, text: "" },
      { text, changes, byHand: [], advice: [] },
    ]);
  }
  const tarball = await addTarball(folder, edgeWeir, edits);
  await replaceFiles(folder, edits).catch(async (error) => {
    await tarball.remove();
    throw error;
  });
  const all = edits.map(([, edit]) => edit);
  return {
    report: reportOf(edits),
    hasChanged: all.some(({ changes }) => changes.length > 0),
    needsHand: all.some(({ byHand }) => byHand.length > 0),
    devUrl: usesVite ? "http://localhost:5173" : "http://localhost:8787",
  };
}

/** Copies the package into an app that does not list it yet. A file of the same name stays. */
async function addTarball(folder: string, edgeWeir: EdgeWeir, edits: Edits) {
  const isListed = edits.every(
    ([{ path }, { changes, byHand }]) =>
      path !== "package.json" || changes.length + byHand.length === 0,
  );
  const files = isListed ? [] : tarballFiles(edgeWeir);
  const added = files.filter(([path]) => !existsSync(join(folder, path)));
  await writeFiles(folder, new Map(added));
  return {
    remove: () => Promise.all(added.map(([path]) => rm(join(folder, path), { force: true }))),
  };
}

/** Returns the path by which the entry imports weir.config.ts, with the ending that tsconfig.json requires. */
async function configImport({ folder, entry }: HonoApp): Promise<string> {
  const path = relative(dirname(entry.path), "weir.config").replaceAll("\\", "/");
  const { text = "" } = (await readText(folder, "tsconfig.json")) ?? {};
  const ending = /"module(Resolution)?":\s*"node(16|18|20|next)"/i.test(text) ? ".js" : "";
  return `${path.startsWith(".") ? "" : "./"}${path}${ending}`;
}

/** Writes the edited files. If one cannot be written, restores all of them, and throws a {@link Failure}. */
async function replaceFiles(folder: string, edits: Edits): Promise<void> {
  const written: AppFile[] = [];
  try {
    for (const [file, { text, changes }] of edits) {
      if (changes.length === 0) continue;
      written.push(file);
      await writeFile(join(folder, file.path), (file.mark ?? "") + text);
    }
  } catch (error) {
    // A folder named weir.config.ts is not Weir's, so it stays.
    const undo = ({ path, text, mark = "" }: AppFile) =>
      path === CONFIG
        ? rm(join(folder, path)).catch(() => {})
        : writeFile(join(folder, path), mark + text);
    const undone = await Promise.allSettled(written.map(undo));
    const isUndone = undone.every(({ status }) => status === "fulfilled");
    const outcome = isUndone
      ? "All files have their old contents again."
      : "Some old contents are lost.";
    throw fileFailure(error, outcome);
  }
}

function reportOf(edits: Edits): string {
  const lines = edits.flatMap(([{ path }, { changes }]) =>
    changes.length === 0 ? [] : [path, ...changes.map((change) => `  ${change}`)],
  );
  const byHand = edits.flatMap((edit) => edit[1].byHand);
  const isDone = byHand.length === 0;
  if (lines.length === 0) {
    lines.push(isDone ? "The files have everything that Weir needs already." : "Changed no file.");
  }
  const advice = edits.flatMap((edit) => edit[1].advice);
  const sections: [string, readonly string[]][] = [
    ["Left to you, before Weir limits requests:", byHand],
    ["Also useful:", advice],
  ];
  for (const [title, steps] of sections) {
    if (steps.length > 0) lines.push("", title);
    lines.push(...steps.map((step) => `  ${step.replaceAll("\n", "\n    ")}`));
  }
  return lines.join("\n");
}
