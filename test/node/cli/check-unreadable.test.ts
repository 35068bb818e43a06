import { describe, expect, test } from "vitest";
import { callWeir, check, checkInNewProcess, temporaryFolder } from "./run-weir.ts";

/** The cases in which a new process may differ: its end, and the frames of its stack. */
const IN_NEW_PROCESS: ReadonlySet<string> = new Set([
  "an error after types, which have no code",
  "a promise that never settles",
]);

describe("check of a file that cannot be loaded", () => {
  test.for([
    ["a syntax error in JSON", "a.json", '{"rules": [}', ["value expected (line 1, column 12)"]],
    ["an empty JSON file", "a.json", "", ["SyntaxError: value expected (line 1, column 1)"]],
    [
      "a short JSON file",
      "a.json",
      '{\n  "a": 1\n  "b": 2\n}',
      ["comma expected (line 3, column 3)"],
    ],
    ["a long JSON file", "a.json", `[\n${'"x",\n'.repeat(500)}x]`, ["(line 502, column 1)"]],
    ["a JSON file that ends too early", "a.json", '{\n  "a": [\n', ["(line 2, column 9)"]],
    ["text after JSON", "a.json", "{}\n\n]", ["end of file expected (line 3, column 1)"]],
    [
      "a syntax error in TypeScript",
      "a.ts",
      "export default {\n  rules: [\n",
      ["SyntaxError: Unexpected token", "a.ts:3"],
    ],
    [
      "a syntax error in JavaScript",
      "a.mjs",
      "export default {\n  a: 1\n  b: 2 };",
      ['SyntaxError: Unexpected token, expected ","', "a.mjs:3"],
    ],
    ["a faulty regular expression", "a.ts", "export default /(/;", ["Unterminated group"]],
    ["a missing package", "a.mjs", 'import "weir-missing";', ["'weir-missing'", "Run npm install"]],
    ["a missing module", "a.mjs", 'import "./rules";', ["'./rules'", "the path of the import"]],
    ["a file that does not exist", "a.ts", 'import "./b.ts";', ["'./b.ts'", "a.ts"]],
    ["comments in JSON", "a.json", '{\n  // rules\n  "rules": [] }', ["JSON has no comments"]],
    [
      "a default import",
      "a.ts",
      'import defineConfig from "edge-weir/config"; export default defineConfig({});',
      ['import { defineConfig } from "edge-weir/config"'],
    ],
    [
      "a call of weir",
      "a.ts",
      'import { weir } from "edge-weir"; export default weir({ rules: [] });',
      ["edge-weir works only in a Worker. Use weir only in functions."],
    ],
    [
      "the package's part for Workers",
      "a.ts",
      'import { defineConfig } from "edge-weir";\nexport default defineConfig({});',
      ['Write: import { defineConfig } from "edge-weir/config";', "a.ts:2"],
    ],
    [
      "a module of workerd",
      "a.mjs",
      'import { env } from "cloudflare:workers";\n\nexport default env.RULES;',
      ["cloudflare:workers works only in a Worker. Use env only in functions", "a.mjs:3"],
    ],
    ["another module of workerd", "a.mjs", 'import "cloudflare:email";', ["only in a Worker"]],
    [
      "a name that is not exported",
      "a.mjs",
      'import { define } from "edge-weir/config";\nexport default define({});',
      ["does not export define. It exports ConfigError, defineConfig", "a.mjs:2"],
    ],
    [
      "another module's name that is not exported",
      "a.ts",
      'import { reed } from "node:fs";\nexport default reed();',
      ["reed is not a function", "a.ts:2"],
    ],
    ["no default export", "a.mjs", "export const rules = [];", ["export default defineConfig("]],
    ["an empty module", "a.ts", "", ["export default defineConfig("]],
    ["CommonJS in an ES module", "a.mjs", "module.exports = {};", ["export default defineConfig("]],
    [
      "an error that the file throws",
      "a.mjs",
      '\nthrow new Error("no");',
      ["Error: no", "a.mjs:2"],
    ],
    [
      "an error after types, which have no code",
      "a.ts",
      'interface A {\n  a: 1;\n}\nfunction f() {\n  throw new Error("no");\n}\nf();',
      ["Error: no", "a.ts:5", "a.ts:7"],
    ],
    ["a thrown value that is not an error", "a.mjs", "throw null;", ["The file throws null."]],
    ["process.exit", "a.ts", "\nprocess.exit(0);", ["calls process.exit", "a.ts:2"]],
    [
      "a promise that never settles",
      "a.ts",
      "await new Promise(() => {});\nexport default {};",
      ["awaits a promise that does not settle"],
    ],
    ["another kind of file", "a.yaml", "rules: []", [".ts, .mts, .cts, .js, .mjs, .cjs, .json"]],
  ] as const)("prints the reason, and what to do: %s", async ([title, file, content, says]) => {
    const run = IN_NEW_PROCESS.has(title) ? checkInNewProcess : check;
    const { code, stdout, stderr } = await run(file, content);
    expect(stderr).toContain(`${file} could not be loaded.\n`);
    for (const words of says) expect(stderr).toContain(words);
    // The loader's stack frames would not help the author of the file.
    expect(stderr).not.toMatch(/node:internal|cli\/|commander|jiti/);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });

  test.for([
    [["check"], "weir.config.ts could not be loaded.\nThere is no such file."],
    [["check", "--config", "b.ts"], "b.ts could not be loaded.\nThere is no such file."],
    [["check", "--config", "."], ". could not be loaded.\nThis is not a file."],
  ] as const)("reports a missing file: weir %s", async ([args, message]) => {
    await using folder = await temporaryFolder();
    const { code, stdout, stderr } = await callWeir(args, folder.path);
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
    const { code, stdout, stderr } = await callWeir(args, folder.path);
    expect(JSON.parse(stdout)).toEqual({ ok: false, config, error: expect.any(String) });
    expect({ code, stderr }).toEqual({ code: 1, stderr: "" });
  });
});
