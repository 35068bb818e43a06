import { describe, expect, test } from "vitest";
import { check, runWeir, temporaryFolder, WEIR_CONFIG } from "./run-weir.ts";

describe("check of a file that cannot be loaded", () => {
  test.for([
    ["a syntax error in JSON", "a.json", '{"rules": [}', ["SyntaxError", "is not valid JSON"]],
    ["an empty JSON file", "a.json", "", ["SyntaxError"]],
    [
      "a syntax error in TypeScript",
      "a.ts",
      "export default {\n  rules: [\n",
      ["SyntaxError", "a.ts:"],
    ],
    [
      "a syntax error in JavaScript",
      "a.mjs",
      "export default {",
      ["SyntaxError", "node --check a.mjs"],
    ],
    ["TypeScript that Node cannot strip", "a.ts", "enum A { B }", ["enum", "write plain objects"]],
    ["a missing package", "a.mjs", 'import "weir-missing";', ["'weir-missing'", "Run npm install"]],
    ["a missing module", "a.mjs", 'import "./rules";', ["rules'", "as in ./rules.ts"]],
    ["a module of workerd", "a.mjs", 'import "cloudflare:workers";', ["Rules are plain data"]],
    [
      "a name that is not exported",
      "a.mjs",
      `import { define } from "${WEIR_CONFIG}";`,
      ["'define'", "a.mjs:1"],
    ],
    ["no default export", "a.mjs", "export const rules = [];", ["export default defineConfig("]],
    [
      "an error that the file throws",
      "a.mjs",
      '\nthrow new Error("no");',
      ["Error: no", "a.mjs:2:7"],
    ],
    ["a thrown value that is not an error", "a.mjs", "throw null;", ["The file throws null."]],
    ["another kind of file", "a.yaml", "rules: []", [".ts, .js, .mjs, .json"]],
  ] as const)("prints the reason, and what to do: %s", async ([, file, content, says]) => {
    const { code, stdout, stderr } = await check(file, content);
    expect(stderr).toContain(`${file} could not be loaded.\n`);
    for (const words of says) expect(stderr).toContain(words);
    // The loader's stack frames would not help the author of the file.
    expect(stderr).not.toMatch(/node:internal|cli\/|commander/);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });

  test.for([
    [["check"], "weir.config.ts could not be loaded.\nThere is no such file."],
    [["check", "--config", "b.ts"], "b.ts could not be loaded.\nThere is no such file."],
    [["check", "--config", "."], ". could not be loaded.\nThis is not a file."],
  ] as const)("reports a missing file: weir %s", async ([args, message]) => {
    await using folder = await temporaryFolder();
    const { code, stdout, stderr } = await runWeir(args, folder.path);
    expect(stderr).toContain(message);
    expect(stderr).toContain("--config <file>");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });

  test.for([
    ["a missing file", ["check", "--config", "b.json", "--json"], "b.json"],
    ["a syntax error", ["check", "--config", "a.json", "--json"], "a.json"],
  ] as const)("with --json prints the reason as data: %s", async ([, args, config]) => {
    await using folder = await temporaryFolder();
    await folder.write("a.json", "{");
    const { code, stdout, stderr } = await runWeir(args, folder.path);
    expect(JSON.parse(stdout)).toEqual({ ok: false, config, error: expect.any(String) });
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  });
});
