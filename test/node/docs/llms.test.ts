import { existsSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { llmsText } from "../../../site/.vitepress/llms.ts";
import { PAGES } from "./pages.ts";

it("llms.txt lists every page of docs/ by a URL, in the order of docs/README.md", () => {
  const text = llmsText(
    readFileSync("docs/README.md", "utf8"),
    "A rate limiter.",
    "https://x.example",
  );
  expect(text).toMatch(/^# Weir\n\n> A rate limiter\.\n\n## /);
  const links = [...text.matchAll(/\]\(([^)]*)\)/g)].map(([, link = ""]) => link);
  const paths = links.map((link) => link.replace("https://x.example/", "").replace(/#.*/, ""));
  expect(paths.filter((path) => !existsSync(path))).toEqual([]);
  const pages = PAGES.filter((path) => path.startsWith("docs/") && path !== "docs/README.md");
  expect(paths).toContain("SKILL.md");
  expect(pages.filter((path) => !paths.includes(path))).toEqual([]);
  expect(text.split("\n").filter((line) => !/^(?:[#>-] |## |$)/.test(line))).toEqual([]);
});
