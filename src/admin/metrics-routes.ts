import { Hono } from "hono";
import { accepts } from "hono/accepts";
import type { AdminEnv } from "./admin-env.ts";
import { metricsOf } from "./metrics.ts";
import { CONTENT_TYPE, metricsText } from "./metrics-text.ts";

const OPENMETRICS = "application/openmetrics-text";

/**
 * The metrics, at `/_weir/metrics`: in OpenMetrics if the request prefers it, otherwise in the older
 * text format of Prometheus, which all programs read.
 */
export const metricsRoutes = new Hono<AdminEnv>();

metricsRoutes.get("/", async (c) => {
  const { operations } = c.var;
  const [totals, rules] = await Promise.all([operations.totals(), operations.rules()]);
  const preferred = accepts(c, {
    header: "Accept",
    supports: [OPENMETRICS, "text/plain"],
    default: "text/plain",
  });
  const format = preferred === OPENMETRICS ? "openmetrics" : "prometheus";
  const headers = { "Content-Type": CONTENT_TYPE[format], Vary: "Accept" };
  return new Response(metricsText(metricsOf(totals, rules), format), { headers });
});
