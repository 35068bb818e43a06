import { DurableObject } from "cloudflare:workers";
import { Hono } from "hono";
import type { AdminEnv } from "../../../../src/admin/admin-problem.ts";
import { dashboardRoutes } from "../../../../src/admin/dashboard/routes.ts";
import { withSecurityFields } from "../../../../src/admin/login.ts";
import { defineConfig } from "../../../../src/config/index.ts";
import type { StatisticsQuery } from "../../../../src/control/protocol.ts";
import { Statistics } from "../../../../src/control/statistics.ts";
import { FakeOperations } from "./fake-operations.ts";

// The dashboard with 200 rules and without a log-in, to measure its pages. The statistics come from
// a control object with a year of made-up traffic. This Worker must never be deployed.

const DAY_MS = 86_400_000;
const DAYS = 365;

interface Env {
  readonly CONTROL: DurableObjectNamespace<YearObject>;
}

const config = defineConfig({
  rules: ["login", "search", "uploads"].map((name) => ({
    name,
    key: "header:x-api-key | ip",
    limit: 33,
    window: "1m",
  })),
});

const fake = new FakeOperations({ rules: 200, clock: Date.now });

/** A Durable Object with the statistics of a year. */
export class YearObject extends DurableObject<Env> {
  /** An object without calls for some seconds loses its memory, but not its tables. */
  #statistics = new Statistics(this.ctx.storage, Date.now() - DAYS * DAY_MS);

  statistics(query: StatisticsQuery) {
    return this.#statistics.read(query, Date.now());
  }

  totals() {
    return { ...this.#statistics.totals(Date.now()), overrides: 0 };
  }

  /** Fills the tables as the uploads of a year do: all minutes of the last 6 hours, and all days. */
  async fill(): Promise<void> {
    const now = Date.now();
    const times = Array.from({ length: DAYS }, (_, index) => now - (DAYS - index) * DAY_MS);
    for (let minute = 360; minute >= 0; minute -= 1) times.push(now - minute * 60_000);
    for (const [sequence, at] of times.entries()) {
      const { minutes, clients } = await sumsAt(at);
      await this.#statistics.add(
        {
          source: "year",
          sequence,
          minutes,
          clients,
          breakerOpen: false,
          overridesVersion: 0,
        },
        at,
      );
    }
  }
}

/** Returns the sums of one minute, from the made-up traffic. */
async function sumsAt(at: number) {
  const minute = Math.floor(at / 60_000);
  const from = minute * 60_000;
  const query = { resolution: "minute", from, until: from + 60_000 } as const;
  const { buckets, rules, clients } = await fake.statistics(query);
  const minutes = buckets.map(({ requests, store }) => ({ minute, requests, store, rules }));
  return { minutes, clients: clients.map((each) => ({ ...each, lastAt: at })) };
}

const app = new Hono<AdminEnv & { Bindings: Env }>();
app.post("/fill", async (c) => {
  await c.env.CONTROL.getByName("global").fill();
  return c.text("filled");
});
app.use(async (c, next) => {
  const control = c.env.CONTROL.getByName("global");
  c.set("actor", "token");
  c.set("role", "admin");
  c.set("csrf", "csrf");
  c.set(
    "operations",
    new Proxy(fake, {
      get(target, name) {
        if (name === "statistics") return (query: StatisticsQuery) => control.statistics(query);
        if (name === "totals") return () => control.totals();
        const member = Reflect.get(target, name);
        return typeof member === "function" ? member.bind(target) : member;
      },
    }),
  );
  c.set("config", config);
  await next();
  c.res = withSecurityFields(c.res);
});
app.route("/_weir/", dashboardRoutes);

export default {
  fetch: (request: Request, env: Env) => app.fetch(request, env as Env & AdminEnv["Bindings"]),
};
