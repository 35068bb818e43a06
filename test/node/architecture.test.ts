import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";

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
  "gateway",
  "entry",
  "service",
];

/** The modules that export everything, so they import from all folders. */
const ENTRIES = ["src/index.ts", "src/entry/worker.ts"];

/** The folders with code outside src/. Biome finds import cycles in all folders (`noImportCycles`). */
const TOOLS = ["bench", "cli", "create", "dev", "examples", "fuzz", "scripts"];

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
  if (ENTRIES.includes(file)) return ORDER.length;
  const [folder = "."] = file.split("/").slice(1, -1);
  return ORDER.indexOf(folder);
}

it("has only folders in src/ that have a place in the order", () => {
  expect(files.filter((file) => rankOf(file) === -1)).toEqual([]);
});

it("imports in src/ only from the same folder and from those before it", () => {
  const climbing = files.flatMap((file) => {
    const later = importsOf.get(file)?.filter((path) => rankOf(path) > rankOf(file)) ?? [];
    return later.map((path) => `${file} imports ${path}`);
  });
  expect(climbing).toEqual([]);
});

it("imports nothing from test/ outside the tests", () => {
  const importing = TOOLS.flatMap(filesIn).filter((file) =>
    importsIn(file).some((path) => path.startsWith("test/")),
  );
  expect(importing).toEqual([]);
});
