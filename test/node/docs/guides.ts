import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { type Page, readPage } from "./pages.ts";

const ROOT = join(import.meta.dirname, "../../..");

/** The packages that the files on the pages import. */
const PACKAGES = ["@cloudflare", "hono", "vite", "vitest", "wrangler"];

/** The first line of a code block that is a complete file: a comment with the file's name. */
const FILE_NAME = /^(?:\/\/|#) ([\w./-]+\.(?:ts|toml))\n/;

/** Whether a page belongs to docs/guides/. */
export function isGuide(path: string): boolean {
  return path.startsWith("docs/guides/");
}

/** Whether a code block is a complete file. */
export function isFile(code: string): boolean {
  return FILE_NAME.test(code);
}

/** Returns the complete files on a page, by name. */
export function filesOf({ blocks }: Page): Map<string, string> {
  return new Map(
    blocks.flatMap(({ code }) => {
      const name = FILE_NAME.exec(code)?.[1];
      return name === undefined ? [] : [[name, code]];
    }),
  );
}

/** Whether a page has lines for the environment production, and no complete wrangler.toml. */
export function isForProduction(page: Page): boolean {
  const parts = page.blocks.filter(({ code }) => code.startsWith("[env.production."));
  return parts.length > 0 && !filesOf(page).has("wrangler.toml");
}

/** The start of a wrangler.toml. On a page, a reader finds only the lines that the page needs. */
const WRANGLER_START = `
name = "guide"
main = "worker.ts"
compatibility_date = "2026-11-01"
workers_dev = false
preview_urls = false
`;

const WRANGLER_END = `
[[durable_objects.bindings]]
name = "COUNTERS"
class_name = "CounterObject"

[[migrations]]
tag = "v1"
new_sqlite_classes = ["CounterObject"]
`;

/** The lines that the environment of a guide needs in addition to those on the page. */
const PRODUCTION = `
[[env.production.durable_objects.bindings]]
name = "COUNTERS"
class_name = "CounterObject"
`;

const CONFIG = `
import { defineConfig } from "edge-weir/config";
export default defineConfig({ rules: [{ name: "api", limit: 100, window: "1m" }] });
`;

const WORKER = `
import { weir } from "edge-weir";
import config from "./weir.config.ts";
export { CounterObject } from "edge-weir";
export default weir(config);
`;

/** The types that `wrangler types` writes for this Worker. */
const ENV_TYPES = `
declare namespace Cloudflare {
  interface GlobalProps {
    mainModule: typeof import("./worker.ts");
  }
}
`;

const TSCONFIG = {
  extends: join(ROOT, "tsconfig.json"),
  compilerOptions: { types: ["@cloudflare/workers-types", "@cloudflare/vitest-plugin/types"] },
  include: ["."],
  // This file imports Vite, and with it the types of Node, which differ from those of workerd.
  exclude: ["**/vitest.config.ts"],
};

/** A folder that has Weir installed, with one project for each page. */
export interface GuideProjects {
  readonly path: string;
  /** Returns the folder of a page's project. */
  folderOf(page: string): string;
  remove(): Promise<void>;
}

/** Creates a project with the files of each page. */
export async function createProjects(pages: readonly string[]): Promise<GuideProjects> {
  const path = await mkdtemp(join(tmpdir(), "weir-guides-"));
  const folderOf = (page: string) => join(path, basename(page, ".md"));
  await writeFile(join(path, "package.json"), JSON.stringify({ type: "module" }));
  await writeFile(join(path, "tsconfig.json"), JSON.stringify(TSCONFIG));
  for (const page of pages) {
    await mkdir(folderOf(page));
    for (const [name, content] of projectOf(readPage(page))) {
      const path = join(folderOf(page), name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content);
    }
  }
  await installPackages(join(path, "node_modules"));
  return { path, folderOf, remove: () => rm(path, { recursive: true }) };
}

/** Returns the files of a page's project, by name. Files that the page leaves out are added. */
function projectOf(page: Page): Map<string, string> {
  const toml = page.blocks.filter(({ language, code }) => language === "toml" && !isFile(code));
  const files = filesOf(page);
  const parts = [WRANGLER_START, ...toml.map(({ code }) => code), WRANGLER_END];
  if (isForProduction(page)) parts.push(PRODUCTION);
  return new Map([
    ["wrangler.toml", parts.join("\n")],
    ["weir.config.ts", CONFIG],
    ["worker.ts", WORKER],
    ["src/index.ts", WORKER.replace("./weir", "../weir")],
    ...(files.has("worker.ts") ? [["env.d.ts", ENV_TYPES] as const] : []),
    ...files,
  ]);
}

async function installPackages(modules: string): Promise<void> {
  await mkdir(modules);
  await symlink(ROOT, join(modules, "edge-weir"));
  for (const name of PACKAGES) {
    await symlink(join(ROOT, "node_modules", name), join(modules, name));
  }
}
