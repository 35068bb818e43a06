import { toJsonSchema } from "@valibot/to-json-schema";
import type { GenericSchema } from "valibot";
import { noRuleSums } from "../statistics/add-sums.ts";
import {
  AuditParameters,
  ChangeBody,
  ExplainBody,
  OverrideForm,
  PeekBody,
  RemoveBody,
  StatisticsParameters,
} from "./api-schemas.ts";

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
