import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadConfig, loadModule } from "../../../cli/load-config.ts";
import { callWeir, runWeir, temporaryFolder } from "./run-weir.ts";

const RULE = '{ name: "login", match: { paths: ["/login"] }, limit: 5, window: "1m" }';
const CONFIG = `
  import { type Config, defineConfig } from "edge-weir/config";
  export default defineConfig({ rules: [${RULE}] }) satisfies Config;
`;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

/** Writes files, and loads the first of them. */
async function load(files: Readonly<Record<string, string>>) {
  for (const [name, content] of Object.entries(files)) await folder.write(name, content);
  return loadConfig(`${folder.path}/${Object.keys(files)[0]}`);
}

describe("a configuration", () => {
  test.for([
    ["TypeScript", { "a.ts": CONFIG }],
    ["TypeScript in a CommonJS package", { "a.ts": CONFIG, "package.json": '{"type":"commonjs"}' }],
    ["TypeScript in an ESM package", { "a.ts": CONFIG, "package.json": '{"type":"module"}' }],
    ["TypeScript, .mts", { "a.mts": CONFIG }],
    ["TypeScript, .cts", { "a.cts": CONFIG }],
    ["TypeScript with export =", { "a.cts": `export = { rules: [${RULE}] };` }],
    ["an ES module", { "a.mjs": `export default { rules: [${RULE}] };` }],
    ["an ES module in a CommonJS package", { "a.js": `export default { rules: [${RULE}] };` }],
    ["a CommonJS module", { "a.cjs": `module.exports = { rules: [${RULE}] };` }],
    ["JSON that begins with a byte order mark", { "a.json": '\uFEFF{ "rules": [] }' }],
    [
      "syntax that needs a compiler",
      { "a.ts": `enum Paths { Login = "/login" }\n${CONFIG.replace('"/login"', "Paths.Login")}` },
    ],
    [
      "an import without an extension",
      {
        "a.ts": 'import { rules } from "./rules"; export default { rules };',
        "rules.ts": `export const rules: object[] = [${RULE}];`,
      },
    ],
    [
      "an import of JSON",
      { "a.ts": 'import rules from "./rules.json"; export default { rules };', "rules.json": "[]" },
    ],
    [
      "an import of TypeScript from JavaScript",
      {
        "a.mjs": 'import { rules } from "./rules.ts"; export default { rules };',
        "rules.ts": "export const rules: object[] = [];",
      },
    ],
    [
      "a path of tsconfig.json",
      {
        "a.ts": 'import { rules } from "@/rules"; export default { rules };',
        "rules.ts": "export const rules = [];",
        "tsconfig.json": '{ "compilerOptions": { "paths": { "@/*": ["./*"] } } }',
      },
    ],
    [
      "modules of workerd that only its functions use",
      {
        "a.ts": `
          import { env } from "cloudflare:workers";
          import { RateLimitError } from "edge-weir";
          export const plan = () => (env.PLAN ? "pro" : new RateLimitError());
          export default { rules: [${RULE}] };
        `,
      },
    ],
  ] as const)("can contain: %s", async ([, files]) => {
    expect(await load(files)).toMatchObject({ kind: "valid" });
  });

  test("is checked by this copy of Weir, so that its faults keep their paths", async () => {
    const loaded = await load({ "a.ts": CONFIG.replace("limit: 5", "limit: -1") });
    expect(loaded).toMatchObject({ kind: "faulty", faults: [{ path: "rules[0].limit" }] });
  });

  test("is read again each time, with its imports", async () => {
    const files = {
      "a.ts": 'import { rules } from "./rules.ts"; export default { rules };',
      "rules.ts": `export const rules = [${RULE}];`,
    };
    expect(await load(files)).toMatchObject({ kind: "valid", config: { rules: [{}] } });
    await folder.write("rules.ts", "export const rules = [];");
    expect(await load({ "a.ts": files["a.ts"] })).toMatchObject({ config: { rules: [] } });
  });

  test("runs each of its imports once", async () => {
    const loaded = await load({
      "a.ts": `
        import { list } from "./list.ts";
        import "./more.ts";
        export default { rules: list };
      `,
      "more.ts": `import { list } from "./list.ts"; list.push(${RULE});`,
      "list.ts": "export const list: object[] = [];",
    });
    expect(loaded).toMatchObject({ kind: "valid", config: { rules: [{ name: "login" }] } });
  });

  test("leaves no copy of itself on the disk", async () => {
    expect(await load({ "a.ts": CONFIG })).toMatchObject({ kind: "valid" });
    const { readdir } = await import("node:fs/promises");
    expect(await readdir(folder.path)).toEqual(["a.ts"]);
  });
});

const WITH_RULE = 'export default { rules: [{ name: "api", limit: 5, window: "1m" }] };';

describe("a file that does more than export a configuration", () => {
  test("does not write to the standard output, which is JSON for programs", async () => {
    await folder.write("a.ts", `console.log("hello");\n${WITH_RULE}`);
    const { stdout, stderr, code } = await callWeir(
      ["check", "--config", "a.ts", "--json"],
      folder.path,
    );
    expect(JSON.parse(stdout)).toMatchObject({ ok: true });
    expect({ stderr, code }).toEqual({ stderr: "hello\n", code: 0 });
  });

  test("does not keep the command running", async () => {
    await folder.write("a.ts", `setInterval(() => {}, 1000);\n${WITH_RULE}`);
    const { stdout, code } = await runWeir(["check", "--config", "a.ts"], folder.path);
    expect({ stdout, code }).toEqual({ stdout: expect.stringContaining("a.ts is ok"), code: 0 });
  });

  test("has a limited time to load", async () => {
    await folder.write("a.ts", "await new Promise((go) => setTimeout(go, 60_000));");
    const loading = loadModule(`${folder.path}/a.ts`, 1);
    await expect(loading).rejects.toThrow("awaits a promise that does not settle");
  });
});
