import { globSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { readPage } from "./pages.ts";

it("docs/storage.md lists the tables of the control object", () => {
  const code = globSync("src/control/*.ts").map((path) => readFileSync(path, "utf8"));
  const created = [...code.join("\n").matchAll(/CREATE TABLE IF NOT EXISTS (\S+) /g)];
  // One statement creates a table for each resolution.
  const tables = created.flatMap(([, name = ""]) =>
    name.startsWith("$")
      ? ["minute", "hour", "day"].map((each) => name.replace(/^\$\{\w+\}/, each))
      : [name],
  );
  const { lines } = readPage("docs/storage.md");
  const section = lines.slice(lines.indexOf("## Statistics and overrides"));
  const listed = section.flatMap((line) => /^\| `(\w+)` \|/.exec(line)?.[1] ?? []);
  expect(listed.toSorted()).toEqual(tables.toSorted());
});
