import { execFile } from "node:child_process";
import { describe, expect, it } from "vitest";
import { callWeir, runWeir, temporaryFolder } from "./run-weir.ts";

const RULES = 'rules: [{ name: "api", limit: 5, window: "1m", key: "custom:k | ip" }]';
const LATER = 'new Promise((resolve) => setTimeout(() => resolve("a"), 200))';

async function run(source: string, args: readonly string[], weir = callWeir) {
  await using folder = await temporaryFolder();
  await folder.write("weir.config.ts", source);
  return await weir(args, folder.path, { WEIR_MODE: undefined, WEIR_KEY_SECRET: undefined });
}

const keyOf = (body: string) =>
  `export default { ${RULES}, custom: { keys: { k: () => { ${body} } } } };`;
const loading = (before: string) => `${before}; ${keyOf('return "a"')}`;
const EXPLAIN = ["explain", "https://api.example.com/"];

describe("code of a configuration that would end the process", () => {
  it.each([
    ["a function that calls process.exit", keyOf("process.exit(0)"), /calls process\.exit/],
    [
      "a function that catches this",
      keyOf("try { process.exit(0) } catch { return 'a' }"),
      /calls process\.exit/,
    ],
    [
      "a timer that throws",
      keyOf(`setTimeout(() => { throw new Error("late") }); return ${LATER}`),
      /late/,
    ],
    [
      "a promise of a function",
      keyOf(`Promise.reject(new Error("late")); return ${LATER}`),
      /late/,
    ],
    [
      "a promise while the file loads",
      loading('Promise.reject(new Error("early"))'),
      /could not be loaded.*early/s,
    ],
    [
      "a timer while the file loads",
      loading(`setTimeout(() => { throw new Error("early") }); await ${LATER}`),
      /could not be loaded.*early/s,
    ],
  ])("makes explain exit with 2 and a message: %s", async (_, source, message) => {
    const { code, stdout } = await run(source, [...EXPLAIN, "--json"]);
    expect(code).toBe(2);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: expect.stringMatching(message) });
    const text = await run(source, EXPLAIN);
    expect(text).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(message) });
    expect(text.stderr).not.toContain("node:internal");
  });

  it("makes the process of explain end with 2", async () => {
    const source = keyOf(`setTimeout(() => { throw new Error("late") }); return ${LATER}`);
    const { code, stdout, stderr } = await run(source, EXPLAIN, runWeir);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain("late");
    expect(stderr).not.toContain("node:internal");
  });

  it("makes check exit with 1", async () => {
    const source = loading('Promise.reject(new Error("early"))');
    const { code, stdout } = await run(source, ["check", "--json"]);
    expect(code).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({ ok: false, error: expect.stringMatching("early") });
  });
});

describe.concurrent("the guard of the whole command", () => {
  const GUARD = new URL("../../../cli/process.ts", import.meta.url).href;

  it.each([
    ["an error in a timer", 'setTimeout(() => { throw new Error("late") })', 2, /late/],
    ["a promise that nothing handles", 'Promise.reject(new Error("late"))', 2, /late/],
    ["a call of process.exit", "process.exit(0)", 2, /calls process\.exit/],
    ["an exit after a signal", "process.exit(130)", 130, undefined],
    ["an error after the end", "end(); setTimeout(() => { throw new Error() })", 0, undefined],
  ])("prints one JSON document for %s", async (_, body, expected, message) => {
    const script = `const { guardProcess } = await import(${JSON.stringify(GUARD)});
      const end = guardProcess(true); ${body}; await new Promise((r) => setTimeout(r, 20)); end();`;
    const { code, stdout } = await new Promise<{ code: unknown; stdout: string }>((resolve) => {
      const args = ["--input-type=module", "--eval", script];
      execFile(process.execPath, args, (error, out) =>
        resolve({ code: error?.code ?? 0, stdout: out }),
      );
    });
    expect(code).toBe(expected);
    if (message) expect(JSON.parse(stdout).error).toMatch(message);
    else expect(stdout).toBe("");
  });
});
