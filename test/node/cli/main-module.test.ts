import { describe, expect, test } from "vitest";
import { type MainModule, mayExport, readMainModule } from "../../../cli/deployment/main-module.ts";
import { COUNTERS, checkFolder, HEAD, RULES } from "./check-folder.ts";
import { temporaryFolder } from "./run-weir.ts";

/** Reads a main module with this text. */
async function mainOf(text: string): Promise<MainModule> {
  await using folder = await temporaryFolder();
  await folder.write("worker.ts", text);
  return await readMainModule(folder.path, "worker.ts");
}

test.each([
  ['export { CounterObject } from "edge-weir";', true],
  ['export { weir, CounterObject, } from "edge-weir";', true],
  ['export { CounterObject as Other } from "edge-weir";', false],
  ['export { Other as CounterObject } from "./other.ts";', true],
  ['export * from "edge-weir";', true],
  ["export class CounterObject extends Base {}", true],
  ["class CounterObject {}", false],
  ['import { CounterObject } from "edge-weir";', false],
  ['/* export { CounterObject } from "edge-weir"; */', false],
  ['// export { CounterObject } from "edge-weir";', false],
  ['const url = "https://a"; export { CounterObject };', true],
  ["export { CounterObjects };", false],
  ["", false],
])("whether a main module exports CounterObject: %j gives %j", async (text, expected) => {
  expect(mayExport(await mainOf(text), "CounterObject")).toBe(expected);
});

test("a main module without a file may export any class", async () => {
  expect(mayExport(await readMainModule("/", "missing.ts"), "CounterObject")).toBe(true);
});

describe("a Worker with a custom domain and no origin", () => {
  const DOMAIN = 'routes = [{ pattern = "shop.example.com", custom_domain = true }]\n';
  const RULE = { name: "api", limit: 5, window: "1m" };

  async function codesWith(worker: string, fields: object = {}): Promise<string[]> {
    const { findings } = await checkFolder({
      [RULES]: JSON.stringify({ rules: [RULE], ...fields }),
      "worker.ts": `export { CounterObject } from "edge-weir";\n${worker}`,
      "wrangler.toml": HEAD + DOMAIN + COUNTERS,
    });
    return findings.map(({ code }) => code);
  }

  test.each([
    ["export default weir(config);", ["no-origin"]],
    ["export default\n  weir( config );", ["no-origin"]],
    [
      "const gateway = weir(config);\nexport default { fetch: (r, e, c) => gateway.fetch(r, e, c, next) };",
      [],
    ],
    ["app.use(rateLimit(config));\nexport default app;", []],
    ["export class Limits extends WeirService {}\nexport default {};", []],
  ])("has a fault only if Weir certainly forwards: %j gives %j", async (worker, expected) => {
    expect(await codesWith(worker)).toEqual(expected);
  });

  test("reports no fault about the origin if the Worker is an app, because an app ignores the origin", async () => {
    const origin = { binding: "API" };
    const app = "app.use(rateLimit(config));\nexport default app;";
    expect(await codesWith(app, { origin })).toEqual([]);
    for (const worker of ["export default weir(config);", 'export { default } from "./gate.ts";']) {
      expect(await codesWith(worker, { origin })).toEqual(["origin-unbound"]);
    }
  });
});

test.each([
  ["src/missing.ts", ["main-missing"]],
  ["dist/missing.js", ["main-missing"]],
  // The Vite plugin takes the main module from a package, or creates it.
  ["@tanstack/react-start/server-entry", []],
  ["virtual:react-router/server-build", []],
])("the main module %s, which is no file, gives %j", async (main, expected) => {
  const { findings } = await checkFolder({
    [RULES]: JSON.stringify({ rules: [{ name: "api", limit: 5, window: "1m" }] }),
    "wrangler.toml": HEAD.replace("worker.ts", main) + COUNTERS,
  });
  expect(findings.map(({ code }) => code)).toEqual(expected);
});
