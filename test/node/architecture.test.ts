import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";

/** The folders of src/, in the order in which a request passes through them. */
const ORDER = [
  "config",
  "request",
  "engine",
  "stores",
  "limiter",
  "http",
  "overrides",
  "statistics",
  "control",
  "explain",
  "admin",
  "llm",
  ".",
];

/**
 * The folders with code outside src/. Biome finds import cycles in all folders (`noImportCycles`).
 */
const TOOLS = ["bench", "cli", "create", "dev", "examples", "fuzz", "scripts", "soak"];

const files = filesIn("src");
const importsOf = new Map(files.map((file) => [file, importsIn(file)] as const));

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.tsx?$/.test(path))
    .map((path) => join(folder, path))
    .sort();
}

function importsIn(file: string): string[] {
  const source = readFileSync(file, "utf8");
  const specifiers = source.matchAll(/(?:from|import\() ?"(\.{1,2}\/[^"]+)"/g);
  return [...specifiers].map(([, path]) => join(dirname(file), path as string));
}

function rankOf(file: string): number {
  const [folder = "."] = file.split("/").slice(1, -1);
  return ORDER.indexOf(folder);
}

describe("a file in src/", () => {
  it.each(files)("%s imports only from its own folder and those before it", (file) => {
    expect(rankOf(file)).not.toBe(-1);
    const later = importsOf.get(file)?.filter((path) => rankOf(path) > rankOf(file));
    expect(later).toEqual([]);
  });

  // Nobody reads or edits generated files.
  it.each(files.filter((file) => !file.endsWith(".generated.ts")))(
    "%s has at most 500 lines",
    (file) => {
      const lines = readFileSync(file, "utf8").trimEnd().split("\n");
      expect(lines.length).toBeLessThanOrEqual(500);
    },
  );

  it.each(files)("%s is part of no cycle, types included", (file) => {
    const reached = new Set<string>();
    const queue = [...(importsOf.get(file) ?? [])];
    for (const next of queue) {
      if (reached.has(next)) continue;
      reached.add(next);
      queue.push(...(importsOf.get(next) ?? []));
    }
    expect(reached).not.toContain(file);
  });

  it.each(files)("%s has a line in ARCHITECTURE.md's map", (file) => {
    const name = `\`${file.split("/").at(-1)}\``;
    // This test does not use `toContain`, because a failure would print the whole page.
    const hasLine = readFileSync("ARCHITECTURE.md", "utf8").includes(`| ${name} |`);
    expect(hasLine, `Add a line for ${name} under "Every file of src/"`).toBe(true);
  });
});

describe.each(TOOLS)("the folder %s/", (folder) => {
  it("imports nothing from test/", () => {
    const imported = filesIn(folder).flatMap(importsIn);
    expect(imported.filter((path) => path.startsWith("test/"))).toEqual([]);
  });
});
