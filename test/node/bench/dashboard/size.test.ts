import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startDashboard } from "./dashboard-worker.ts";
import { assetsOf, transfer } from "./transfer.ts";

const MAX_BYTES = 100 * 1024;

describe("the dashboard with 200 rules and a year of statistics", () => {
  let dashboard: Awaited<ReturnType<typeof startDashboard>>;

  beforeAll(async () => {
    dashboard = await startDashboard();
  });

  afterAll(() => dashboard?.stop());

  it.each(["/_weir/", "/_weir/?range=6h", "/_weir/?range=1y", "/_weir/rules?range=1y"])(
    "transfers at most 100 KiB for %s with all its assets",
    async (path) => {
      const page = await transfer(dashboard.origin + path);
      expect(page.status).toBe(200);
      expect(page.headers["content-encoding"]).toBe("gzip");
      expect(page.text).toMatch(/<\/html>$/);
      const assets = await Promise.all(
        assetsOf(page.text).map((asset) => transfer(dashboard.origin + asset)),
      );
      expect(assets.length).toBe(3);
      const bytes = assets.reduce((sum, asset) => sum + asset.bytes, page.bytes);
      expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
    },
  );

  it("sends no asset of another host, and compresses each asset", async () => {
    const { text } = await transfer(`${dashboard.origin}/_weir/`);
    for (const path of assetsOf(text)) {
      const { headers } = await transfer(dashboard.origin + path);
      expect(headers["content-encoding"]).toBe("gzip");
      expect(headers["cache-control"]).toContain("immutable");
    }
  });
});
