import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CODES } from "../../../cli/doctor/findings.ts";

test("docs/doctor.md lists every code of weir doctor with its severity", () => {
  const page = readFileSync("docs/doctor.md", "utf8");
  const rows = [...page.matchAll(/^- \*\*`([a-z-]+)`\*\* \((\w+)\): \S/gm)];
  const documented = rows.map(([, code, severity]) => `${code}: ${severity}`);
  const actual = Object.entries(CODES).map(([code, { severity }]) => `${code}: ${severity}`);
  expect(documented.sort()).toEqual(actual.sort());
});

test("every finding of weir doctor that is not ok has cure", () => {
  for (const [code, each] of Object.entries(CODES)) {
    const cure = "cure" in each ? each.cure : "";
    expect(cure.length > 20, code).toBe(each.severity !== "ok");
    expect(cure, code).not.toMatch(/\.$/);
  }
});
