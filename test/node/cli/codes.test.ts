import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { CODES } from "../../../cli/finding.ts";

/** The codes that a page explains, with their severities: those in bold at the start of a list item. */
function explainedIn(page: string): [code: string, severity: string][] {
  const items = readFileSync(page, "utf8").matchAll(/^- \*\*`([a-z0-9-]+)`\*\*( \(fault\))?: \S/gm);
  return [...items].map(([, code = "", fault]) => [code, fault ? "fault" : "warning"]);
}

describe("the codes of weir check", () => {
  const codes = Object.entries(CODES);

  test("are each explained once, in docs/check.md or docs/security.md, with their severity", () => {
    const page = explainedIn("docs/check.md");
    const others = explainedIn("docs/security.md").filter(([code]) => code in CODES);
    expect([...page, ...others].toSorted()).toEqual(codes.toSorted());
  });

  test("are all named in docs/check.md", () => {
    const page = readFileSync("docs/check.md", "utf8");
    for (const [code] of codes) expect(page).toContain(`\`${code}\``);
  });
});
