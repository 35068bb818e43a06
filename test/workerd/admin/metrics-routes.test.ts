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

/** Requests the metrics with this header Accept. */
async function scrape(accept?: string, operations: Partial<AdminOperations> = OPERATIONS) {
  const app = new Hono<AdminEnv>();
  app.use(async (c, next) => {
    c.set("operations", operations as AdminOperations);
    await next();
  });
  app.route("/_weir/metrics", metricsRoutes);
  app.onError(problemOf);
  const headers = new Headers(accept === undefined ? {} : { accept });
  return app.request("/_weir/metrics", { headers });
}

const OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN = "text/plain; version=0.0.4; charset=utf-8";

describe("/_weir/metrics", () => {
  it.each([
    [
      "Prometheus",
      "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
      OPENMETRICS,
    ],
    ["a program for OpenMetrics", "application/openmetrics-text", OPENMETRICS],
    ["an older Prometheus", "text/plain;version=0.0.4;q=1,*/*;q=0.1", PLAIN],
    [
      "a program that prefers the older format",
      "application/openmetrics-text;q=0.5,text/plain",
      PLAIN,
    ],
    ["curl", "*/*", PLAIN],
    ["a program without a wish", undefined, PLAIN],
    ["a browser", "text/html,application/xhtml+xml,*/*;q=0.8", PLAIN],
    ["nonsense", ";;q=x,,/", PLAIN],
  ])("answers %s in its format", async (_, accept, contentType) => {
    const response = await scrape(accept);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe(contentType);
    expect(response.headers.get("vary")).toBe("Accept");
    const text = new TextDecoder().decode(await response.arrayBuffer());
    expect(text.endsWith("\n# EOF\n")).toBe(contentType === OPENMETRICS);
    expect(text).toContain('\nweir_requests_total{outcome="limited"} 10\n');
  });

  it("answers with a problem if there are no statistics", async () => {
    const totals = () => Promise.reject(new OperationError("unavailable", "No WEIR_CONTROL."));
    const response = await scrape("*/*", { ...OPERATIONS, totals });
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ detail: "No WEIR_CONTROL." });
  });
});
