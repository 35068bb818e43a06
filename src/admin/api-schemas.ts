import * as v from "valibot";
import { parseIsoTime } from "../config/iso-time.ts";
import { MAX_LIMIT } from "../config/limits.ts";
import { MAX_URL } from "../explain/described-request.ts";
import { MAX_REASON } from "../overrides/override-schema.ts";
import { MAX_FACTOR } from "../overrides/override-windows.ts";
import { IDENTITY_FORM, IDENTITY_PATTERN } from "../request/identity.ts";

// The schemas of what programs send to the API. Its description in OpenAPI is made of them. Each message continues
// a sentence that begins with the name of the field.

/** The maximum number of entries of the audit list in one answer. */
export const MAX_ENTRIES = 500;
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

export const PeekBody = v.pipe(
  strict({ ...clientFields, rule: v.optional(RuleName) }),
  oneSelector(),
);

export const ChangeBody = v.pipe(
  strict({ ...clientFields, rule: RuleName, why: Why }),
  oneSelector(),
);

export const RemoveBody = strict({
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

export const StatisticsParameters = strict({
  resolution: v.optional(
    v.picklist(["minute", "hour", "day"], "must be minute, hour or day"),
    "minute",
  ),
  from: v.optional(Time),
  until: v.optional(Time),
  rule: v.optional(RuleName),
});

export const AuditParameters = strict({
  limit: v.optional(count(MAX_ENTRIES), "50"),
  before: v.optional(count(Number.MAX_SAFE_INTEGER)),
});

const Factor = v.pipe(v.number(), v.minValue(0), v.maxValue(MAX_FACTOR));
const Limit = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(MAX_LIMIT));

/**
 * The form of the body that sets an override, for the description only: `checkOverride` reads the body, because
 * the allowed effects depend on whether the override is for a client.
 */
export const OverrideForm = v.strictObject({
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
