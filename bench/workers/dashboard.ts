import { Hono } from "hono";
import { FakeOperations } from "../../dev/fake-operations.ts";
import type { AdminEnv } from "../../src/admin/admin-env.ts";
import { dashboardRoutes } from "../../src/admin/dashboard/routes.tsx";
import { withSecurityFields } from "../../src/admin/security-fields.ts";
import { defineConfig } from "../../src/config/index.ts";

// The dashboard with made-up traffic and without a log-in, to measure and to look at its pages. It is a bench
// and must never be deployed.

const config = defineConfig({
  rules: [{ name: "search", key: "header:x-api-key | ip", limit: 33, window: "1m" }],
});

const operations = new FakeOperations({ rules: 200, clock: Date.now });

const app = new Hono<AdminEnv>();
app.use(async (c, next) => {
  c.set("actor", "token");
  c.set("role", c.req.header("x-role") === "read" ? "read" : "admin");
  c.set("csrf", "csrf");
  c.set("operations", operations);
  c.set("config", config);
  await next();
  c.res = withSecurityFields(c.res);
});
app.route("/_weir/", dashboardRoutes);

export default { fetch: (request: Request) => app.fetch(request) };
