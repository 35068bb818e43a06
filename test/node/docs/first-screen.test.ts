import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { linkFault, linksOf, readPage } from "./pages.ts";

const page = readPage("site/first-screen.md");
const reasons = page.prose.join("\n").match(/^- .*(?:\n {2}.*)*/gm) ?? [];
const { repository }: { repository: { url: string } } = JSON.parse(
  readFileSync("package.json", "utf8"),
);

describe("the first screen of the website", () => {
  it("installs the package from its repository", () => {
    expect(page.blocks.map(({ code }) => code)).toEqual([`npm install ${repository.url}\n`]);
  });

  it("links only to pages and headings that exist", () => {
    // The links are relative to README.md, whose beginning this text replaces.
    expect(linksOf(page).flatMap((link) => linkFault("README.md", link) ?? [])).toEqual([]);
  });

  it("has three reasons, and takes each number and command from the page that the reason links to", () => {
    expect(reasons.length).toBe(3);
    const strange = reasons.map((reason) => {
      const [, path = ""] = /\]\((docs\/[^)#]+)/.exec(reason) ?? [];
      const source = readFileSync(path, "utf8").replace(/\s+/g, " ");
      const text = reason.replace(/\]\([^)]*\)/g, "").replace(/\s+/g, " ");
      const numbers = numbersIn(text);
      const commands = [...text.matchAll(/`([^`]+)`/g)].map(([, command = ""]) => command);
      expect([numbers.length > 0, commands.length > 0]).toEqual([true, true]);
      return [
        ...numbers.filter((number) => !numbersIn(source).includes(number)),
        ...commands.filter((command) => !source.includes(command)),
      ];
    });
    expect(strange).toEqual([[], [], []]);
  });
});

function numbersIn(text: string): string[] {
  return text.match(/\d[\d.,]*(?<=\d)/g) ?? [];
}
