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
  const [, list = ""] = readFileSync("docs/replay.md", "utf8").split(/The\s+codes\s+are/);
  const documented = [...list.matchAll(/`([a-z-]+)`/g)].map(([, code = ""]) => code);
  expect(codes.size).toBeGreaterThan(15);
  expect(documented.sort()).toEqual([...codes].sort());
});
