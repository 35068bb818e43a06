import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { type CodeBlock, PAGES, readPage } from "./pages.ts";

const ROOT = join(import.meta.dirname, "../../..");

/** The packages that the files on the pages import. */
const PACKAGES = ["@cloudflare", "hono", "vite", "vitest", "wrangler"];

/** The first line of a code block that is a complete file: a comment with the file's name. */
const FILE_NAME = /^(?:\/\/|#) ([\w./-]+\.(?:ts|toml))\n/;

/** A project that a page describes: the page has complete files of it. */
export interface Guide {
  /** The page, and the section if several sections of the page have a weir.config.ts. */
  readonly title: string;
  readonly blocks: readonly CodeBlock[];
}

/** The guides of all pages in docs/. */
export const GUIDES: readonly Guide[] = PAGES.filter((path) => path.startsWith("docs/")).flatMap(
  guidesOf,
);

function guidesOf(title: string): Guide[] {
  const { blocks } = readPage(title);
  if (!blocks.some(({ code }) => isFile(code))) return [];
  const configs = blocks.filter(({ code }) => nameOf(code) === "weir.config.ts");
  if (configs.length < 2) return [{ title, blocks }];
  return configs.map(({ section }) => ({
    title: `${title}#${section}`,
    blocks: blocks.filter((block) => block.section === section),
  }));
}

/** Returns the guide with this title. */
export function guide(title: string): Guide {
  const found = GUIDES.find((each) => each.title === title);
  if (!found) throw new Error(`There is no guide ${title}.`);
  return found;
}

/** Whether a code block is a complete file. */
export function isFile(code: string): boolean {
  return nameOf(code) !== undefined;
}

function nameOf(code: string): string | undefined {
  return FILE_NAME.exec(code)?.[1];
}

/** Returns the complete files of a guide, by name. */
export function filesOf({ blocks }: Guide): Map<string, string> {
  return new Map(
    blocks.flatMap(({ code }) => {
      const name = nameOf(code);
      return name === undefined ? [] : [[name, code]];
    }),
  );
}

/** Whether a guide has lines for the environment production, and no complete wrangler.toml. */
export function isForProduction(guide: Guide): boolean {
  const parts = guide.blocks.filter(({ code }) => code.startsWith("[env.production."));
  return parts.length > 0 && !filesOf(guide).has("wrangler.toml");
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

[exports]
CounterObject = { type = "durable-object", storage = "sqlite" }
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
export { ControlObject, CounterObject } from "edge-weir";
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

/** A folder that has Weir installed, with one project for each guide. */
export interface GuideProjects {
  readonly path: string;
  /** Returns the folder of a guide's project. */
  folderOf(guide: Guide): string;
  remove(): Promise<void>;
}

/** Creates a project with the files of each guide. */
export async function createProjects(): Promise<GuideProjects> {
  const path = await mkdtemp(join(tmpdir(), "weir-guides-"));
  const folderOf = ({ title }: Guide) => join(path, basename(title).replace(".md", ""));
  await writeFile(join(path, "package.json"), JSON.stringify({ type: "module" }));
  await writeFile(join(path, "tsconfig.json"), JSON.stringify(TSCONFIG));
  for (const each of GUIDES) {
    await mkdir(folderOf(each));
    for (const [name, content] of projectOf(each)) {
      const path = join(folderOf(each), name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content);
    }
  }
  await installPackages(join(path, "node_modules"));
  return { path, folderOf, remove: () => rm(path, { recursive: true }) };
}

/** Returns the files of a guide's project, by name. Files that the page leaves out are added. */
function projectOf(guide: Guide): Map<string, string> {
  const toml = guide.blocks.filter(({ language, code }) => language === "toml" && !isFile(code));
  const files = filesOf(guide);
  const parts = [WRANGLER_START, ...toml.map(({ code }) => code), WRANGLER_END];
  if (isForProduction(guide)) parts.push(PRODUCTION);
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
  await mkdir(join(modules, ".bin"));
  const weir = `#!/bin/sh\nexec "${process.execPath}" "${ROOT}/cli/weir.ts" "$@"\n`;
  await writeFile(join(modules, ".bin/weir"), weir, { mode: 0o755 });
  for (const name of PACKAGES) {
    await symlink(join(ROOT, "node_modules", name), join(modules, name));
  }
}
