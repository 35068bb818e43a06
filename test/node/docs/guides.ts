import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
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

const WORKER = `
import { weir } from "edge-weir";
import config from "./weir.config.ts";
export { CounterObject } from "edge-weir";
export default weir(config);
`;

const TSCONFIG = {
  extends: join(ROOT, "tsconfig.json"),
  compilerOptions: { types: ["@cloudflare/workers-types", "@cloudflare/vitest-plugin/types"] },
  include: ["."],
};

/** A project in a temporary folder. `await using` deletes it at the end. */
export interface GuideProject extends AsyncDisposable {
  readonly path: string;
}

/** Creates a project that has Weir installed, with the files of a page. */
export async function createProject(page: string): Promise<GuideProject> {
  const path = await mkdtemp(join(tmpdir(), "weir-guide-"));
  const { blocks } = readPage(page);
  const toml = blocks.filter(({ language, code }) => language === "toml" && !isFile(code));
  const files = new Map([
    ["package.json", JSON.stringify({ type: "module" })],
    ["tsconfig.json", JSON.stringify(TSCONFIG)],
    ["worker.ts", WORKER],
    ["wrangler.toml", [WRANGLER_START, ...toml.map(({ code }) => code), WRANGLER_END].join("\n")],
    ...filesOf(readPage(page)),
  ]);
  for (const [name, content] of files) {
    await mkdir(dirname(join(path, name)), { recursive: true });
    await writeFile(join(path, name), content);
  }
  const modules = join(path, "node_modules");
  await mkdir(modules);
  await symlink(ROOT, join(modules, "edge-weir"));
  for (const name of PACKAGES) {
    await symlink(join(ROOT, "node_modules", name), join(modules, name));
  }
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true }) };
}
