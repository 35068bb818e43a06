import { Hono } from "hono";
import type { AdminEnv } from "../../../../src/admin/admin-problem.ts";
import { dashboardRoutes } from "../../../../src/admin/dashboard/routes.ts";
import type { AdminOperations } from "../../../../src/admin/operations.ts";
import { defineConfig } from "../../../../src/config/define.ts";
import { FakeOperations } from "./fake-operations.ts";

/** 10:00:30 UTC on a Sunday. */
export const NOW = Date.UTC(2026, 10, 22, 10, 0, 30);

export const config = defineConfig({
  rules: [
    { name: "login", match: { paths: ["/login"] }, limit: 5, window: "1m" },
    { name: "search", key: "header:x-api-key | ip", limit: 33, window: "1m" },
    { name: "uploads", key: ["jwt:sub", "path"], limit: 33, window: "1m" },
  ],
  jwt: { jwks: "https://id.example.com/keys", algs: ["RS256"] },
});

export interface DashboardOptions {
  readonly role?: "admin" | "read";
  readonly actor?: string;
  readonly operations?: Partial<AdminOperations>;
  readonly rules?: number;
  readonly clock?: () => number;
}

/** The dashboard with made-up traffic, as the admin app mounts it. */
export function createDashboard({
  role = "admin",
  actor = "token",
  operations = {},
  rules = 6,
  clock = () => NOW,
}: DashboardOptions = {}) {
  const fake = new FakeOperations({ rules, clock });
  const all: AdminOperations = new Proxy(fake, {
    get: (target, name: keyof AdminOperations) =>
      operations[name] ?? (Reflect.get(target, name) as () => unknown).bind(target),
  });
  const app = new Hono<AdminEnv>();
  app.use(async (c, next) => {
    c.set("actor", actor);
    c.set("role", role);
    c.set("csrf", "the-csrf-token");
    c.set("operations", all);
    c.set("config", config);
    await next();
  });
  app.route("/_weir/", dashboardRoutes);

  return {
    fake,
    app,
    request: (path: string, init?: RequestInit) =>
      app.request(`https://api.example.com/_weir${path}`, init),
    async text(path: string, init?: RequestInit): Promise<string> {
      return (await this.request(path, init)).text();
    },
    post(path: string, fields: Record<string, string>) {
      return this.request(path, { method: "POST", body: new URLSearchParams(fields) });
    },
  };
}
