import { existsSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import type { Plugin } from "vite";

const DOCS = join(import.meta.dirname, "../docs");

/** Matches the name under which tests import a configuration: `guide:PAGE` or `guide:PAGE/SECTION`. */
const NAME = /^guide:([\w-]+)(?:\/([\w-]+))?$/;

/**
 * Matches the path of a configuration's module. With the ending .ts, Vite compiles the module. No file has this name,
 * so the plugin itself must resolve the paths that lead to it.
 */
const MODULE = /^.*\/docs\/((?:guides\/)?[\w-]+\.md)(?:\.([\w-]+))?\.ts$/;

/** Matches the path of another file on a page. Vite sees it as a file in a folder `PAGE.md`. */
const FILE = /^.*\/docs\/((?:guides\/)?[\w-]+\.md)\/(.+)$/;

/**
 * A plugin for vitest. `guide:PAGE` is the configuration on the page docs/guides/PAGE.md or docs/PAGE.md, as a
 * module; `guide:PAGE/SECTION` has the configuration or the rules below the heading of level 2 with this anchor. So
 * tests run the code that readers see, and there is no copy that could differ.
 */
export function guideConfigs(): Plugin {
  return {
    name: "guide-configs",
    enforce: "pre",
    resolveId(id, importer = "") {
      const [, name, ofSection] = NAME.exec(id) ?? [];
      if (name !== undefined) return moduleOf(pageNamed(name), ofSection);
      const [, page, file = ""] = FILE.exec(importer) ?? MODULE.exec(importer) ?? [];
      if (page !== undefined && id.startsWith(".")) {
        const folder = MODULE.test(importer) ? "" : posix.dirname(file);
        return join(DOCS, page, posix.join(folder, id));
      }
      if (FILE.test(id)) return id;
      const [, known, section] = MODULE.exec(id) ?? [];
      return known === undefined ? undefined : moduleOf(known, section);
    },
    load(id) {
      const [, page = "", file] = FILE.exec(id) ?? [];
      if (file !== undefined) {
        return blocksOf(textOf(page)).find((code) => code.startsWith(`// ${file}\n`));
      }
      const [, name, section] = MODULE.exec(id) ?? [];
      if (name === undefined) return undefined;
      this.addWatchFile(join(DOCS, name));
      return configOf(textOf(name), section);
    },
  };
}

function pageNamed(name: string): string {
  return existsSync(join(DOCS, `guides/${name}.md`)) ? `guides/${name}.md` : `${name}.md`;
}

function moduleOf(page: string, section: string | undefined): string {
  return join(DOCS, section === undefined ? `${page}.ts` : `${page}.${section}.ts`);
}

function textOf(page: string): string {
  return readFileSync(join(DOCS, page), "utf8");
}

/**
 * Returns the first code block of a page, or of one of its sections, that calls `defineConfig`. If a section has only
 * rules, it returns a configuration with these.
 */
function configOf(page: string, section?: string): string {
  const text =
    section === undefined
      ? page
      : page.split(/^## /m).find((part) => anchorOf(part.split("\n", 1)[0] ?? "") === section);
  const blocks = blocksOf(text ?? "");
  const config = blocks.find((code) => code.includes("defineConfig("));
  if (config !== undefined) return config;
  const rules = blocks.filter((code) => code.startsWith("{"));
  if (rules.length === 0) throw new Error("The page or the section has no configuration.");
  return `import { defineConfig } from "edge-weir/config";
    export default defineConfig({ rules: [${rules.join("")}] });`;
}

function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, "")
    .replaceAll(" ", "-");
}

function blocksOf(page: string): string[] {
  return [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ""]) => code);
}
