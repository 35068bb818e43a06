import { toJsonSchema } from "@valibot/to-json-schema";
import { Hono } from "hono";
import type { GenericSchema } from "valibot";
import * as v from "valibot";
import { parseIsoTime } from "../config/calendar.ts";
import { MAX_LIMIT } from "../config/window.ts";
import type { Resolution, StatisticsQuery } from "../control/protocol.ts";
import { MAX_URL } from "../explain/described-request.ts";
import { MAX_FACTOR, MAX_REASON } from "../overrides/override.ts";
import { IDENTITY_FORM, IDENTITY_PATTERN } from "../request/identity.ts";
import { noRuleSums } from "../statistics/sums.ts";
import { type AdminEnv, noOverride, problemOf, unknownRule } from "./admin-problem.ts";
import { check, invalidInput, queryOf, readJson, selectorOf, setOverrides } from "./input.ts";

// The schemas of what programs send to the API. Its description in OpenAPI is made of them. Each message continues
// a sentence that begins with the name of the field.

/** The maximum number of entries of the audit list in one answer. */
const MAX_ENTRIES = 500;
/** The maximum number of header fields in a described request. */
const MAX_FIELDS = 128;

const text = (message: string, max = 64) =>
  v.pipe(v.string(message), v.minLength(1, message), v.maxLength(max, message));

const RuleName = v.pipe(text("must be the name of a rule"), v.description("The name of a rule."));

const Why = v.pipe(
  v.string(`must be a text of 1 to ${MAX_REASON} characters`),
  v.trim(),
  v.minLength(1, `must be a text of 1 to ${MAX_REASON} characters`),
  v.maxLength(MAX_REASON, `must be a text of 1 to ${MAX_REASON} characters`),
  v.description("The reason for the change, for the audit list."),
);

const IDENTITY = `must be ${IDENTITY_FORM}`;

const clientFields = {
  client: v.optional(
    v.pipe(
      v.string(IDENTITY),
      v.regex(IDENTITY_PATTERN, IDENTITY),
      v.description("The client's identity, as answers and log lines show it."),
    ),
  ),
  known: v.optional(
    v.pipe(
      v.record(
        v.string(),
        v.string("must be a text"),
        'must be an object of values by the names in keys, such as { "ip": "203.0.113.7" }',
      ),
      v.description(
        "What is known about the client, by the names in keys, such as ip or header:x-api-key. The values are hashed and not stored.",
      ),
    ),
  ),
};

/** Refuses a selector with both fields or with neither. */
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
  id: v.pipe(
    text("must be the id of an override: the rule's name, or RULE:CLIENT", 200),
    v.description("The rule's name, or for the override of a client RULE:CLIENT."),
  ),
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
      v.record(v.string(), v.string("must be a text"), "must be an object of texts by field"),
      v.maxEntries(MAX_FIELDS, `must have at most ${MAX_FIELDS} fields`),
      v.description("Header fields. The client's address is in cf-connecting-ip."),
    ),
  ),
  cf: v.optional(
    v.pipe(
      v.record(v.string(), v.unknown(), 'must be an object, such as { "country": "DE" }'),
      v.description("Cloudflare's data about the client, such as country and asn."),
    ),
  ),
  body: v.optional(
    v.pipe(v.string("must be a text"), v.description("The body, for functions in custom.")),
  ),
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

const Factor = v.pipe(v.number(), v.minValue(0), v.maxValue(MAX_FACTOR));
const Limit = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(MAX_LIMIT));

/**
 * The form of the body that sets an override, for the description only: `checkOverride` reads the body, because
 * the allowed effects depend on whether the override is for a client.
 */
const OverrideForm = v.strictObject({
  rule: RuleName,
  ...clientFields,
  effect: v.union([
    v.strictObject({ kind: v.literal("limits"), limits: v.record(v.string(), Limit) }),
    v.strictObject({ kind: v.literal("factor"), factor: Factor }),
    v.strictObject({ kind: v.picklist(["unlimited", "blocked"]) }),
    v.strictObject({
      mode: v.optional(v.picklist(["enforce", "shadow", "off"])),
      factor: v.optional(Factor),
    }),
  ]),
  expiresIn: v.optional(
    v.pipe(
      v.union([v.string(), v.number()]),
      v.description('A length of time, such as "2h", or a number of seconds.'),
    ),
  ),
  expiresAt: v.optional(
    v.pipe(
      v.union([v.string(), v.number()]),
      v.description("A time with its zone, or milliseconds since 1970. Instead of expiresIn."),
    ),
  ),
  reason: Why,
});

/** A part of the document. */
type Part = Readonly<Record<string, unknown>>;

/** What differs between the operations of the API. */
interface ApiOperation {
  readonly summary: string;
  readonly body?: GenericSchema;
  /** The schema of the parameters in the query. */
  readonly query?: GenericSchema;
  /** The fields that the answer has at least. */
  readonly answer: Readonly<Record<string, "array" | "object" | "number" | "string" | Part>>;
}

const RULE_SUMS: Part = {
  type: "object",
  description: "The sums of each rule, by its name",
  additionalProperties: {
    type: "object",
    properties: {
      ...mapValues({ ...noRuleSums() }, () => ({ type: "number" })),
      peak: {
        type: "number",
        minimum: 0,
        maximum: 1,
        description: "The largest part of a limit that any client had used; 0 if it is unknown",
      },
    },
  },
};

const OPERATIONS: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>> = {
  "/rules": { get: { summary: "Lists the rules and their overrides", answer: { rules: "array" } } },
  "/statistics": {
    get: {
      summary: "Returns sums by minute, hour or day",
      query: StatisticsParameters,
      answer: { resolution: "string", buckets: "array", rules: RULE_SUMS, clients: "array" },
    },
  },
  "/totals": {
    get: {
      summary: "Returns the sums since the control object exists",
      answer: { since: "number", requests: "object", store: "object", rules: RULE_SUMS },
    },
  },
  "/peek": {
    post: {
      summary: "Reads a client's quotas and bans, and takes no quota",
      body: PeekBody,
      answer: { clients: "array" },
    },
  },
  "/reset": {
    post: {
      summary: "Removes a client's counts and its ban under a rule",
      body: ChangeBody,
      answer: { clients: "array" },
    },
  },
  "/lift-ban": {
    post: {
      summary: "Removes a client's ban under a rule, and keeps its counts",
      body: ChangeBody,
      answer: { clients: "array" },
    },
  },
  "/overrides": {
    get: { summary: "Lists the overrides", answer: { overrides: "array" } },
    put: {
      summary: "Sets the override of a rule or of a client",
      body: OverrideForm,
      answer: { override: "object", overrides: "array" },
    },
    delete: { summary: "Removes an override", body: RemoveBody, answer: { override: "object" } },
  },
  "/audit": {
    get: {
      summary: "Lists the changes of operators, the newest first",
      query: AuditParameters,
      answer: { entries: "array" },
    },
  },
  "/explain": {
    post: {
      summary: "Explains which rules apply to a described request, and takes no quota",
      body: ExplainBody,
      answer: { outcome: "string", request: "object", rules: "array", response: "object" },
    },
  },
};

/** Returns the description of the API in OpenAPI 3.1. */
export function openApiDocument(): Part {
  return {
    openapi: "3.1.0",
    info: {
      title: "Weir",
      version: "1",
      description:
        "What operators of Weir see and change. Without a valid credential, no path exists.",
    },
    servers: [{ url: "/_weir/api" }],
    security: [{ token: [] }],
    paths: mapValues(OPERATIONS, (methods, path) =>
      mapValues(methods, (each, method) => operationOf(path, method, each)),
    ),
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: { Problem: PROBLEM },
    },
  };
}

function operationOf(path: string, method: string, operation: ApiOperation): Part {
  const { summary, body, query, answer } = operation;
  const fields = mapValues(answer, (type) => (typeof type === "string" ? { type } : type));
  return {
    operationId: `${method}${path.replaceAll(/[/-](\w)/g, (_, first: string) => first.toUpperCase())}`,
    summary,
    ...(query && { parameters: parametersOf(query) }),
    ...(body && {
      requestBody: { required: true, content: { "application/json": { schema: schemaOf(body) } } },
    }),
    responses: {
      200: {
        description: "The result",
        content: {
          "application/json": {
            schema: { type: "object", required: Object.keys(answer), properties: fields },
          },
        },
      },
      default: {
        description: "What was wrong, and what is allowed",
        content: {
          "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } },
        },
      },
    },
  };
}

const PROBLEM: Part = {
  type: "object",
  required: ["type", "title", "status", "detail"],
  properties: {
    type: { type: "string" },
    title: { type: "string" },
    status: { type: "integer" },
    detail: { type: "string", description: "What was wrong, and what is allowed" },
    changed: {
      type: "boolean",
      description: "false if nothing was changed. A 503 without it: a change may have been made",
    },
    faults: {
      type: "array",
      items: {
        type: "object",
        required: ["path", "message"],
        properties: { path: { type: "string" }, message: { type: "string" } },
      },
    },
  },
};

/** Returns what clients may send. JSON Schema cannot express all checks, so the description omits some. */
function schemaOf(schema: GenericSchema): Part {
  const { $schema: _, ...rest } = toJsonSchema(schema, { typeMode: "input", errorMode: "ignore" });
  return rest;
}

function parametersOf(query: GenericSchema): Part[] {
  const { properties = {} } = schemaOf(query) as { properties?: Record<string, Part> };
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "query",
    required: false,
    schema,
  }));
}

function mapValues<Value, Result>(
  record: Readonly<Record<string, Value>>,
  map: (value: Value, key: string) => Result,
): Record<string, Result> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value, key)]));
}

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
