import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { callWeir, temporaryFolder, WEIR_CONFIG } from "../cli/run-weir.ts";
import { readPage } from "./pages.ts";

const { blocks } = readPage("SKILL.md");
const config = blocks.find(({ code }) => code.includes("defineConfig("))?.code ?? "";
const fields = blocks.filter(({ language, code }) => language === "ts" && code !== config);

/** Runs a command in a folder whose weir.config.ts has this code. */
async function runWith(code: string, args: string[]) {
  await using folder = await temporaryFolder();
  await folder.write("weir.config.ts", code.replace("edge-weir/config", WEIR_CONFIG));
  return await callWeir(args, folder.path);
}

describe("SKILL.md", () => {
  it("has a name and a description, and at most 500 words", () => {
    const text = readFileSync("SKILL.md", "utf8");
    expect(text).toMatch(/^---\nname: [a-z-]{1,64}\ndescription: [^:]{1,1024}\n---\n/);
    expect(text.split(/\s+/).filter(Boolean).length).toBeLessThanOrEqual(500);
  });

  it("has commands that find no fault in its configuration, and explain its login", async () => {
    const commands = blocks
      .flatMap(({ code }) => code.split("\n"))
      .filter((line) => line.startsWith("npx weir "));
    const runs = commands.map((line) => runWith(config, line.split(" ").slice(2)));
    expect(await Promise.all(runs)).toEqual([
      { code: 0, stderr: "", stdout: expect.stringContaining("is ok: 4 rules") },
      { code: 0, stderr: "", stdout: expect.stringMatching(/^✓ login applies/m) },
    ]);
  });

  it("has fields that a rule of the configuration may have", async () => {
    expect(fields).toHaveLength(3);
    const start = config.replace("defineConfig({", 'defineConfig({ jwt: { secret: "JWT_SECRET" },');
    for (const { code } of fields) {
      // The highest cost of the page needs a limit as high.
      const rules = start.replace("limit: 100,", `limit: 100_000_000, ${code}`);
      const check = await runWith(rules, ["check"]);
      expect(check).toMatchObject({ code: 0, stdout: expect.stringContaining("4 rules") });
    }
  });
});
