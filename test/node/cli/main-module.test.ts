import { describe, expect, test } from "vitest";
import { COUNTERS, checkFolder, HEAD, RULES } from "./check-folder.ts";

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
