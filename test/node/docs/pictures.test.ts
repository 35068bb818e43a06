import { globSync, readFileSync, statSync } from "node:fs";
import { basename } from "node:path";
import { expect, it } from "vitest";
import { PAGES } from "./pages.ts";

// `npm run pictures` makes the pictures.

const MAX_BYTES = 150 * 1024;
const pictures = globSync("docs/pictures/*").sort();

it.each(pictures)("%s is a small PNG", (path) => {
  expect(readFileSync(path).subarray(1, 4).toString("latin1")).toBe("PNG");
  expect(statSync(path).size).toBeLessThanOrEqual(MAX_BYTES);
});

it("each picture is on a page, in a light and a dark version", () => {
  const texts = PAGES.map((page) => readFileSync(page, "utf8")).join("\n");
  const names = pictures.map((path) => basename(path));
  expect(names.length).toBeGreaterThan(3);
  expect(names.filter((name) => !texts.includes(`pictures/${name}`))).toEqual([]);
  const other = (name: string) =>
    name.replace(/light|dark/, (is) => (is === "light" ? "dark" : "light"));
  expect(names.filter((name) => !names.includes(other(name)))).toEqual([]);
});
