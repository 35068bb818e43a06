import { Hono } from "hono";
import type { Resolution, StatisticsQuery } from "../control/protocol.ts";
import type { AdminEnv } from "./admin-env.ts";
import { problemOf } from "./admin-problem.ts";
import { check, invalidInput, queryOf, readJson, selectorOf } from "./api-input.ts";
import {
  AuditParameters,
  ChangeBody,
  ExplainBody,
  PeekBody,
  RemoveBody,
  StatisticsParameters,
} from "./api-schemas.ts";
import { openApiDocument } from "./openapi.ts";
import { setOverrides } from "./set-overrides.ts";
import { noOverride, unknownRule } from "./unknown-rule.ts";

/** The API for programs, below `/_weir/api/`. */
export const apiRoutes = new Hono<AdminEnv>();

apiRoutes.onError(problemOf);

apiRoutes.get("/openapi.json", (c) => c.json(openApiDocument()));

apiRoutes.get("/rules", async (c) => c.json({ rules: await c.var.operations.rules() }));

apiRoutes.get("/totals", async (c) => c.json(await c.var.operations.totals()));

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** The longest time of a query, and the time of a query without `from`, in milliseconds. */
const RANGES: Readonly<Record<Resolution, { readonly maxMs: number; readonly defaultMs: number }>> =
  {
    minute: { maxMs: DAY_MS, defaultMs: 60 * MINUTE_MS },
    hour: { maxMs: 31 * DAY_MS, defaultMs: DAY_MS },
    day: { maxMs: 366 * DAY_MS, defaultMs: 30 * DAY_MS },
  };

/** Returns the query with its defaults. @throws {OperationError} if the time is too long */
function statisticsQuery(given: Record<string, string>): StatisticsQuery {
  const { resolution, from, until = Date.now(), rule } = check(StatisticsParameters, given);
  const { maxMs, defaultMs } = RANGES[resolution];
  const query = { resolution, from: from ?? until - defaultMs, until, ...(rule && { rule }) };
  const lengthMs = query.until - query.from;
  if (lengthMs > 0 && lengthMs <= maxMs) return query;
  const days = maxMs / DAY_MS;
  const message = `must be before until, by at most ${days} days with resolution ${resolution}.`;
  throw invalidInput([{ path: "from", message }]);
}

apiRoutes.get("/statistics", async (c) => {
  const query = statisticsQuery(queryOf(c));
  const report = await c.var.operations.statistics(query);
  const { rule } = query;
  const { config } = c.var;
  if (rule === undefined || config.rules.some(({ name }) => name === rule)) return c.json(report);
  // There are sums of rules that the configuration no longer has.
  if (!Object.hasOwn(report.rules, rule)) throw unknownRule(rule, config);
  return c.json(report);
});

apiRoutes.post("/peek", async (c) => {
  const body = check(PeekBody, await readJson(c));
  return c.json({ clients: await c.var.operations.peek(selectorOf(body), body.rule) });
});

apiRoutes.post("/reset", async (c) => {
  const body = check(ChangeBody, await readJson(c));
  const { rule, why } = body;
  const clients = await c.var.operations.reset(selectorOf(body), rule, c.var.actor, why);
  return c.json({ clients });
});

apiRoutes.post("/lift-ban", async (c) => {
  const body = check(ChangeBody, await readJson(c));
  const { rule, why } = body;
  const clients = await c.var.operations.liftBan(selectorOf(body), rule, c.var.actor, why);
  return c.json({ clients });
});

apiRoutes.get("/overrides", async (c) => c.json({ overrides: await c.var.operations.overrides() }));

apiRoutes.put("/overrides", async (c) => {
  const overrides = await setOverrides(await readJson(c), c.var);
  return c.json({ override: overrides[0], overrides });
});

apiRoutes.delete("/overrides", async (c) => {
  const { id, why } = check(RemoveBody, await readJson(c));
  const override = await c.var.operations.removeOverride(id, c.var.actor, why);
  if (!override) throw noOverride(id, c.var.config);
  return c.json({ override });
});

apiRoutes.get("/audit", async (c) => {
  const { limit, before } = check(AuditParameters, queryOf(c));
  return c.json({ entries: await c.var.operations.audit(limit, before) });
});

apiRoutes.post("/explain", async (c) => {
  const { headers, cf, body, ...request } = check(ExplainBody, await readJson(c));
  const optional = { ...(headers && { headers }), ...(cf && { cf }) };
  const described = { ...request, ...optional, ...(body !== undefined && { body }) };
  return c.json(await c.var.operations.explain(described));
});
