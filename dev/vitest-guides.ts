import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import type { Plugin } from "vite";

const GUIDES = join(import.meta.dirname, "../docs/guides");

/**
 * Matches the name of a guide's module. With the ending .ts, Vite compiles the module. No file has this
 * name, so the plugin itself must resolve the paths that lead to it.
 */
const MODULE = /^(?:guide:|.*\/docs\/guides\/)([\w-]+?)(?:\.md\.ts)?$/;

/** Matches the name of another file on a guide's page. Vite sees it as a file in a folder `NAME.md`. */
const FILE = /^.*\/docs\/guides\/([\w-]+)\.md\/(.+)$/;

/**
 * A plugin for vitest. `guide:NAME` is the configuration on the page docs/guides/NAME.md, as a
 * module. So tests run the code that readers see, and there is no copy that could differ.
 */
export function guideConfigs(): Plugin {
  return {
    name: "guide-configs",
    enforce: "pre",
    resolveId(id, importer = "") {
      const [, page = MODULE.exec(importer)?.[1], file = ""] = FILE.exec(importer) ?? [];
      if (page !== undefined && id.startsWith(".")) {
        return join(GUIDES, `${page}.md`, posix.join(posix.dirname(file), id));
      }
      if (FILE.test(id)) return id;
      const name = MODULE.exec(id)?.[1];
      return name === undefined ? undefined : join(GUIDES, `${name}.md.ts`);
    },
    load(id) {
      const [, page, file] = FILE.exec(id) ?? [];
      if (file !== undefined) {
        const blocks = blocksOf(readFileSync(join(GUIDES, `${page}.md`), "utf8"));
        return blocks.find((code) => code.startsWith(`// ${file}\n`));
      }
      const name = MODULE.exec(id)?.[1];
      if (name === undefined) return undefined;
      const path = join(GUIDES, `${name}.md`);
      this.addWatchFile(path);
      return configOf(readFileSync(path, "utf8"));
    },
  };
}

/** Returns the first code block that calls `defineConfig`. */
export function configOf(page: string): string {
  const config = blocksOf(page).find((code) => code.includes("defineConfig("));
  if (config === undefined) throw new Error("The page has no configuration.");
  return config;
}

function blocksOf(page: string): string[] {
  return [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ""]) => code);
}
