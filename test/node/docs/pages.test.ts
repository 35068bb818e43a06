import { existsSync, globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { inlineCodeOf, linkFault, linksOf, PAGES, type Page, readPage } from "./pages.ts";

const MAX_COLUMNS = 120;
const pages = PAGES.map((path) => [path, readPage(path)] as const);
const { scripts, version }: { scripts: Record<string, string>; version: string } = JSON.parse(
  readFileSync("package.json", "utf8"),
);

/** Returns all code of a page: inline code and code blocks. */
function codeOf(page: Page): string[] {
  return [...inlineCodeOf(page), ...page.blocks.flatMap(({ code }) => code.split("\n"))];
}

/** Searches a page's code, and returns the text that the pattern's group captures in each match. */
function found(page: Page, pattern: RegExp): string[] {
  return codeOf(page).flatMap((code) =>
    [...code.matchAll(pattern)].map(([, part]) => part as string),
  );
}

describe.each(pages)("%s", (path, page) => {
  it("links only to files and headings that exist", () => {
    expect(linksOf(page).flatMap((link) => linkFault(path, link) ?? [])).toEqual([]);
  });

  it(`has no line of more than ${MAX_COLUMNS} columns`, () => {
    const long = page.lines.flatMap((line, index) =>
      line.length > MAX_COLUMNS ? `line ${index + 1}` : [],
    );
    expect(long).toEqual([]);
  });

  it("has as many cells in each row of a table as in its head", () => {
    const rows = page.lines.map((line) =>
      line.startsWith("|") ? line.replaceAll("\\|", "").split("|").length : 0,
    );
    const uneven = rows.flatMap((cells, index) => {
      const above = rows[index - 1] ?? 0;
      return cells > 0 && above > 0 && cells !== above ? `line ${index + 1}` : [];
    });
    expect(uneven).toEqual([]);
  });

  it("names only npm scripts that exist", () => {
    const names = found(page, /\bnpm run ([\w:-]+)/g);
    expect(names.filter((name) => !(name in scripts))).toEqual([]);
  });

  it("names only files that exist", () => {
    const paths = found(page, /(?:^|\s)((?:bench|cli|dev|docs|examples|src|test)\/[^\s…]+)/g);
    const missing = paths.filter((file) => globSync(file).length === 0);
    // Pages use the name `mine` for a test that the reader will write.
    expect(missing.filter((file) => !file.includes("/mine."))).toEqual([]);
  });

  it("names only fuzz targets that exist", () => {
    const targets = found(page, /--target ([\w,-]+)/g).flatMap((list) => list.split(","));
    expect(targets.filter((name) => !existsSync(`fuzz/targets/${name}.ts`))).toEqual([]);
  });
});

it("docs/README.md links to every page in docs/", () => {
  const pages = PAGES.filter((path) => path.startsWith("docs/") && path !== "docs/README.md");
  const linked = linksOf(readPage("docs/README.md")).map((link) => `docs/${link.split("#")[0]}`);
  expect(pages.length).toBeGreaterThan(10);
  expect(pages.filter((path) => !linked.includes(path))).toEqual([]);
});

it("README.md has fewer than 100 lines", () => {
  expect(readPage("README.md").lines.length).toBeLessThan(100);
});

it("README.md names the packed files of this version", () => {
  const names = readPage("README.md")
    .lines.join("\n")
    .match(/[\w-]+-[\d.]+\.tgz/g);
  expect(names).toEqual([`create-edge-weir-${version}.tgz`, `edge-weir-${version}.tgz`]);
});

it.each(["src/index.ts", "src/config/index.ts", "src/llm/index.ts"])(
  "docs/programs.md names all functions and classes that %s exports",
  (file) => {
    const lists = readFileSync(file, "utf8").matchAll(/^export \{([^}]+)\}/gms);
    const exported = [...lists].flatMap(
      ([, names = ""]) => names.match(/(?<!type )\b(?!type\b)\w+/g) ?? [],
    );
    expect(exported.length).toBeGreaterThan(1);
    const named = inlineCodeOf(readPage("docs/programs.md"));
    expect(exported.filter((name) => !named.includes(name))).toEqual([]);
  },
);

it("CONTRIBUTING.md names the tests of each promise", () => {
  expect(found(readPage("CONTRIBUTING.md"), /^(test\/\S+)/g).length).toBeGreaterThan(30);
});
