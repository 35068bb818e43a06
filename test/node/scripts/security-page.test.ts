import { existsSync, globSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const page = readFileSync("SECURITY.md", "utf8");
const scripts: Record<string, string> = JSON.parse(readFileSync("package.json", "utf8")).scripts;

/** What stands in backquotes. */
const quoted = [...page.matchAll(/`([^`]+)`/g)].map(([, text]) => text as string);

describe("SECURITY.md", () => {
  it("names only tests that there are", () => {
    const paths = quoted.filter((text) => text.startsWith("test/"));
    expect(paths.length).toBeGreaterThan(10);
    expect(paths.filter((path) => globSync(path).length === 0)).toEqual([]);
  });

  it("names only commands and targets that there are", () => {
    const commands = quoted.filter((text) => text.startsWith("npm run "));
    const [names, targets] = [
      commands.map((text) => text.split(" ")[2] as string),
      commands.flatMap((text) => /--target (\S+)/.exec(text)?.[1]?.split(",") ?? []),
    ];
    expect(names.filter((name) => name !== "…" && !(name in scripts))).toEqual([]);
    expect(targets.filter((name) => !existsSync(`fuzz/targets/${name}.ts`))).toEqual([]);
  });

  it("links only to pages that there are", () => {
    const links = [...page.matchAll(/\]\(([^)]+)\)/g)].map(([, path]) => path as string);
    expect(links.filter((path) => !existsSync(path))).toEqual([]);
  });
});
