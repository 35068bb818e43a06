import { globSync, readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";

const sources = globSync("cli/{*,deployment/*,warnings/*}.ts").map((path) =>
  readFileSync(path, "utf8"),
);
/** The codes of all findings. */
const codes = new Set(
  sources.flatMap((source) => [...source.matchAll(/\bcode: "([a-z-]+)"/g)].map(([, code]) => code)),
);

/** The codes that a page explains: those in bold at the start of a list item. */
function explainedIn(page: string): (string | undefined)[] {
  const items = readFileSync(page, "utf8").matchAll(/^- ((\*\*`[a-z-]+`\*\*(, )?)+)/gm);
  return [...items].flatMap(([, names = ""]) =>
    [...names.matchAll(/`([a-z-]+)`/g)].map(([, code]) => code),
  );
}

describe("the codes of weir check", () => {
  const explained = [...explainedIn("docs/check.md"), ...explainedIn("docs/security.md")];

  test("are each explained once, in docs/check.md or docs/security.md", () => {
    expect(codes.size).toBeGreaterThan(40);
    const known = explained.filter((code) => codes.has(code));
    expect(known.toSorted()).toEqual([...codes].toSorted());
  });

  test("are all named in docs/check.md, which names no other code", () => {
    const page = readFileSync("docs/check.md", "utf8");
    for (const code of codes) expect(page).toContain(`\`${code}\``);
    expect(explainedIn("docs/check.md").filter((code) => !codes.has(code))).toEqual([]);
  });
});
