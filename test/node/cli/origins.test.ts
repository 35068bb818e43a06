import { describe, expect, test } from "vitest";
import { COUNTERS, checkFolder, HEAD, RULES, WORKER } from "./check-folder.ts";

const RULE = { name: "api", limit: 5, window: "1m", onError: "closed" };
const url = "https://origin.elsewhere.example";

/** Returns the findings about the origins, for routes as lines of a wrangler.toml. */
async function findingsWith(options: object, routes: string, more = "") {
  const rules = JSON.stringify({ rules: [RULE], store: "durable-object", ...options });
  const wrangler = `${HEAD}${routes}\n${more}${COUNTERS}`;
  const { findings } = await checkFolder({
    [RULES]: rules,
    "worker.ts": WORKER,
    "wrangler.toml": wrangler,
  });
  return findings
    .filter(({ code }) => /origin/.test(code))
    .map(({ code, message }) => `${code}: ${message}`);
}

const domain = (host: string) => `{ pattern = "${host}", custom_domain = true }`;
const BOTH = `routes = [${domain("api.example.com")}, ${domain("shop.example")}]`;
const SERVICE = '[[services]]\nbinding = "SHOP"\nservice = "shop-site"\n';

describe("origins by host", () => {
  test("are complete if each custom domain has one", async () => {
    const origins = { "*.example.com": { url }, "shop.example": { binding: "SHOP" } };
    expect(await findingsWith({ origins }, BOTH, SERVICE)).toEqual([]);
  });

  test("are reported if a custom domain has no origin", async () => {
    const origins = { "api.example.com": { url } };
    expect(await findingsWith({ origins }, BOTH)).toEqual([
      "no-origin: The custom domain shop.example has no origin behind it, so Weir cannot forward its requests",
    ]);
    expect(await findingsWith({ origins, origin: { url } }, BOTH)).toEqual([]);
  });

  test("are reported with their host if the binding is missing", async () => {
    const origins = { "shop.example": { binding: "SHOP" }, "api.example.com": { url } };
    expect(await findingsWith({ origins }, BOTH)).toEqual([
      'origin-unbound: origins["shop.example"] names the binding SHOP, which is not bound here, so every request for shop.example gets 502',
    ]);
  });

  test("are reported if a URL leads to the Worker itself", async () => {
    const origins = { "*.example.com": { url: "https://shop.example/" }, "shop.example": { url } };
    expect(await findingsWith({ origins }, BOTH)).toEqual([
      expect.stringContaining('origin-loop: origins["*.example.com"].url in weir.config.ts names'),
    ]);
  });
});
