import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DemoOrigin, startDemoOrigin } from "../../../dev/demo-origin.ts";
import { callWeir, temporaryFolder, WEIR_CONFIG } from "../cli/run-weir.ts";
import { awayFromWindowEdge } from "../support/window-edge.ts";
import { type PageWorkers, startPageWorkers } from "./page-workers.ts";
import { inlineCodeOf, readPage } from "./pages.ts";

const MINUTE = 60_000;
const PAGE = "docs/guides/ten-rules.md";
const { blocks, lines } = readPage(PAGE);
const sections = [...new Set(blocks.map(({ section }) => section))].map((section) => {
  const codeOf = (language: string) =>
    blocks
      .filter((block) => block.section === section && block.language === language)
      .map(({ code }) => code)
      .join("\n");
  const [rules, command, output] = ["ts", "sh", "text"].map(codeOf) as [string, string, string];
  return { section, name: `rule-${section}`, rules, command, output };
});

/** Runs a command of the page against the Worker at this address. @returns what it prints, without the edges' blanks */
async function runInShell(command: string, { host }: URL): Promise<string> {
  expect(command).toContain("localhost:8787/");
  const { stdout } = await promisify(execFile)("bash", [
    "-c",
    command.replaceAll("localhost:8787", host),
  ]);
  return withoutBlanks(stdout);
}

/** uniq indents counts by a number of blanks that differs between systems. */
function withoutBlanks(text: string): string {
  return text.trim().replace(/^ +/gm, "");
}

describe(PAGE, () => {
  let origin: DemoOrigin;
  let workers: PageWorkers;

  beforeAll(async () => {
    origin = await startDemoOrigin();
    workers = await startPageWorkers(
      new Map(sections.map(({ name, rules }) => [name, rules])),
      origin.url,
    );
  });

  afterAll(async () => {
    await workers[Symbol.asyncDispose]();
    await origin.stop();
  });

  it("has ten rules, each with one command and its output", () => {
    expect(lines.filter((line) => /^## \d+\. /.test(line))).toHaveLength(10);
    expect(sections).toHaveLength(10);
    for (const { rules, command, output } of sections) {
      expect(rules).toMatch(/^\{/);
      expect(command.trim().split("\n")).toHaveLength(1);
      expect(output).not.toBe("");
    }
  });

  it.each(sections)("prints what the page says: $section", async ({ name, command, output }) => {
    await awayFromWindowEdge(MINUTE);
    const url = workers.urls.get(name) as URL;
    expect(await runInShell(command, url)).toBe(withoutBlanks(output));
  });

  it("logs the request that the rule in shadow mode would have denied", () => {
    const isDenied = (line: string) => /"mode":"shadow","rule":"all"/.test(line);
    expect(workers.log.filter(isDenied)).toHaveLength(1);
  });

  it("is a configuration without a warning when all ten rules stand in it", async () => {
    await using folder = await temporaryFolder();
    const rules = sections.map((each) => each.rules).join("\n");
    await folder.write(
      "weir.config.ts",
      `import { defineConfig } from "${WEIR_CONFIG}";\nexport default defineConfig({ rules: [${rules}] });\n`,
    );
    const check = await callWeir(["check", "--strict"], folder.path);
    expect(check).toMatchObject({ code: 0, stderr: "" });
    const [line] = inlineCodeOf(readPage(PAGE)).filter((code) => code.includes(" explain "));
    const explain = await callWeir(line?.split(" ").slice(2) ?? [], folder.path);
    expect(explain).toMatchObject({ code: 0, stdout: expect.stringMatching(/^✓ login applies/m) });
  });
});
