import { type Context, Hono } from "hono";
import * as v from "valibot";
import { parseIsoTime } from "../config/calendar.ts";
import type { Resolution, StatisticsQuery } from "../control/protocol.ts";
import { MAX_URL } from "../explain/described-request.ts";
import { MAX_REASON } from "../overrides/override.ts";
import { IDENTITY_FORM, IDENTITY_PATTERN } from "../request/identity.ts";
import { type AdminEnv, noOverride, problemOf, unknownRule } from "./admin-problem.ts";
import { check, invalidField, queryOf, readJson, selectorOf, setOverrides } from "./input.ts";
import type { ClientSelector } from "./operations.ts";

// The schemas of programs' input for the API. Each message continues a sentence that begins with the name of the
// field.

/** The maximum number of entries of the audit list in one answer. */
const MAX_ENTRIES = 500;
/** The maximum number of denials in one answer. */
const MAX_DENIALS = 1000;
/** The maximum number of headers in a described request. */
const MAX_FIELDS = 128;

const text = (message: string, max = 64) =>
  v.pipe(v.string(message), v.minLength(1, message), v.maxLength(max, message));

const RuleName = text("must be the name of a rule");

const WHY = `must be a text of 1 to ${MAX_REASON} characters`;
const Why = v.pipe(v.string(WHY), v.trim(), v.minLength(1, WHY), v.maxLength(MAX_REASON, WHY));

const IDENTITY = `must be ${IDENTITY_FORM}`;

const clientFields = {
  client: v.optional(v.pipe(v.string(IDENTITY), v.regex(IDENTITY_PATTERN, IDENTITY))),
  known: v.optional(
    v.record(
      v.string(),
      v.string("must be a text"),
      'must be an object of values by the names in keys, such as { "ip": "203.0.113.7" }',
    ),
  ),
};

/** Refuses a selector that has not exactly one of its two fields. */
const oneSelector = <Input extends { client?: unknown; known?: unknown }>() =>
  v.check<Input, string>(
    ({ client, known }) => (client === undefined) !== (known === undefined),
    "must have either client, the client's identity, or known, an object of values",
  );

const strict = <const Entries extends v.ObjectEntries>(entries: Entries) =>
  v.strictObject(entries, (issue) =>
    issue.expected === "never"
      ? `must be left out: the fields are ${Object.keys(entries).join(", ")}`
      : issue.path
        ? "is missing"
        : `must be an object with the fields ${Object.keys(entries).join(", ")}`,
  );

const PeekBody = v.pipe(strict({ ...clientFields, rule: v.optional(RuleName) }), oneSelector());

const ChangeBody = v.pipe(strict({ ...clientFields, rule: RuleName, why: Why }), oneSelector());

const RemoveBody = strict({
  id: text("must be the id of an override: the rule's name, or RULE:CLIENT", 200),
  why: Why,
});

const URL_TEXT = "must be an absolute URL of http or https";

export const ExplainBody = strict({
  method: v.optional(text("must be an HTTP method, such as POST", 32), "GET"),
  url: v.pipe(
    v.string(URL_TEXT),
    v.maxLength(MAX_URL, `must have at most ${MAX_URL} characters`),
    v.regex(/^https?:\/\//i, URL_TEXT),
  ),
  headers: v.optional(
    v.pipe(
      // A list is a record too, with the names 0, 1 and so on.
      v.custom<object>((fields) => !Array.isArray(fields), "must be an object of texts by field"),
      v.record(v.string(), v.string("must be a text"), "must be an object of texts by field"),
      v.maxEntries(MAX_FIELDS, `must have at most ${MAX_FIELDS} fields`),
    ),
  ),
  cf: v.optional(
    v.record(v.string(), v.unknown(), 'must be an object, such as { "country": "DE" }'),
  ),
  body: v.optional(v.string("must be a text")),
});

const TIME =
  "must be a time with its zone, such as 2026-12-01T08:00:00Z, or milliseconds since 1970";

const Time = v.pipe(
  v.string(TIME),
  v.regex(/^(\d{1,15}|\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d))$/, TIME),
  v.transform((given) => (/^\d+$/.test(given) ? Number(given) : parseIsoTime(given))),
  v.integer(TIME),
);

const count = (max: number) => {
  const message = `must be a whole number from 1 to ${max}`;
  return v.pipe(
    v.string(message),
    v.regex(/^\d{1,15}$/, message),
    v.transform(Number),
    v.minValue(1, message),
    v.maxValue(max, message),
  );
};

const StatisticsParameters = strict({
  resolution: v.optional(
    v.picklist(["minute", "hour", "day"], "must be minute, hour or day"),
    "minute",
  ),
  from: v.optional(Time),
  until: v.optional(Time),
  rule: v.optional(RuleName),
});

const AuditParameters = strict({
  limit: v.optional(count(MAX_ENTRIES), "50"),
  before: v.optional(count(Number.MAX_SAFE_INTEGER)),
});

const DenialParameters = strict({
  rule: v.optional(RuleName),
  client: clientFields.client,
  since: v.optional(Time),
  until: v.optional(Time),
  limit: v.optional(count(MAX_DENIALS), "100"),
  before: v.optional(count(Number.MAX_SAFE_INTEGER)),
});

const SelectorBody = v.pipe(strict(clientFields), oneSelector());

/** The API for programs, below `/_weir/api/`. */
export const apiRoutes = new Hono<AdminEnv>();

apiRoutes.onError(problemOf);

apiRoutes.get("/rules", async (c) => c.json({ rules: await c.var.operations.rules() }));

apiRoutes.get("/totals", async (c) => c.json(await c.var.operations.totals()));

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;
/** The maximum length of a query's time, and its length without `from`, in milliseconds. */
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
  throw invalidField("from", message, "conflict");
}

apiRoutes.get("/statistics", async (c) => {
  const query = statisticsQuery(queryOf(c));
  const report = await c.var.operations.statistics(query);
  const { rule } = query;
  const { config } = c.var;
  if (rule === undefined || config.rules.some(({ name }) => name === rule)) return c.json(report);
  // A rule that was removed from the configuration may still have sums.
  if (!Object.hasOwn(report.rules, rule)) throw unknownRule(config);
  return c.json(report);
});

/** @param selector undefined for the client of the query, or for all clients */
async function answerDenials(c: Context<AdminEnv>, selector?: ClientSelector) {
  const { client, ...query } = check(DenialParameters, queryOf(c));
  const { operations, config } = c.var;
  const selected = selector ?? (client === undefined ? undefined : { client });
  const denials = await operations.denials(query, selected);
  const isKnown = config.rules.some(({ name }) => name === query.rule);
  // A rule that was removed from the configuration may still have denials.
  if (query.rule !== undefined && !isKnown && denials.length === 0) throw unknownRule(config);
  return c.json({ denials });
}

apiRoutes.get("/denials", (c) => answerDenials(c));

// A client's values must be in no URL, so they come in the body.
apiRoutes.post("/denials", async (c) => {
  return answerDenials(c, selectorOf(check(SelectorBody, await readJson(c))));
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
