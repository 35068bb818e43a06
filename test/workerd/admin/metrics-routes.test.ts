import { Hono } from "hono";
import { describe, expect, it } from "vitest";
import { metricsRoutes } from "../../../src/admin/admin-app.ts";
import { type AdminEnv, problemOf } from "../../../src/admin/admin-problem.ts";
import { type AdminOperations, OperationError } from "../../../src/admin/operations.ts";
import { RULES, TOTALS } from "../../node/support/metrics.ts";

const OPERATIONS: Pick<AdminOperations, "totals" | "rules"> = {
  totals: async () => TOTALS,
  rules: async () => RULES,
};

async function scrape(operations: Partial<AdminOperations> = OPERATIONS) {
  const app = new Hono<AdminEnv>();
  app.use(async (c, next) => {
    c.set("operations", operations as AdminOperations);
    await next();
  });
  app.route("/_weir/metrics", metricsRoutes);
  app.onError(problemOf);
  return app.request("/_weir/metrics");
}

describe("/_weir/metrics", () => {
  it("answers in the text format of Prometheus", async () => {
    const response = await scrape();
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    const text = new TextDecoder().decode(await response.arrayBuffer());
    expect(text).toContain('\nweir_requests_total{outcome="limited"} 10\n');
  });

  it("answers with a problem if there are no statistics", async () => {
    const totals = () => Promise.reject(new OperationError("unavailable", "No WEIR_CONTROL."));
    const response = await scrape({ ...OPERATIONS, totals });
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ detail: "No WEIR_CONTROL." });
  });
});
