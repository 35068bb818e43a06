import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Plugin } from "vite";

const PREFIX = "guide:";
const GUIDES = join(import.meta.dirname, "../docs/guides");

/**
 * A plugin for vitest. `guide:NAME` is the configuration on the page docs/guides/NAME.md, as a
 * module. So tests run the code that readers see, and there is no copy that could differ.
 */
export function guideConfigs(): Plugin {
  return {
    name: "guide-configs",
    resolveId(id) {
      // With the ending .ts, Vite compiles the module. There is no such file.
      return id.startsWith(PREFIX) ? join(GUIDES, `${id.slice(PREFIX.length)}.md.ts`) : undefined;
    },
    load(id) {
      if (!id.startsWith(GUIDES) || !id.endsWith(".md.ts")) return undefined;
      const path = id.slice(0, -".ts".length);
      this.addWatchFile(path);
      return configOf(readFileSync(path, "utf8"));
    },
  };
}

/** Returns the first code block that calls `defineConfig`. */
export function configOf(page: string): string {
  const blocks = [...page.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ""]) => code);
  const config = blocks.find((code) => code.includes("defineConfig("));
  if (config === undefined) throw new Error("The page has no configuration.");
  return config;
}
