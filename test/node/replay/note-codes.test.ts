import { globSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";

it("documents the code of each note, and no other code", () => {
  const sources = globSync(["cli/replay/*.ts", "cli/logs/needs.ts"]).map((path) =>
    readFileSync(path, "utf8"),
  );
  const codes = new Set<string>();
  for (const source of sources) {
    for (const [, code = ""] of source.matchAll(/\bcode: "([a-z-]+)"/g)) codes.add(code);
    const [, union = ""] = /readonly code: ("[^;]+);/.exec(source) ?? [];
    for (const [, code = ""] of union.matchAll(/"([a-z-]+)"/g)) codes.add(code);
  }
  const page = readFileSync("docs/replay.md", "utf8");
  const [, section = ""] = page.split("## Notes\n");
  const rows = section.slice(0, section.indexOf("\n## ")).split("\n");
  const documented = rows.flatMap((row) => {
    const [, cell = ""] = row.split("|");
    return [...cell.matchAll(/`([a-z-]+)`/g)].map(([, code = ""]) => code);
  });
  expect(codes.size).toBeGreaterThan(15);
  expect(documented.sort()).toEqual([...codes].sort());
});
