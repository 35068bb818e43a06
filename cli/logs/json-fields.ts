import { nearestName } from "../../src/config/explain/nearest-name.ts";
import { CommandFailure } from "../command-failure.ts";
import { printable } from "../print/text.ts";
import { clientIp } from "./log-request.ts";
import { parseLogTime } from "./log-time.ts";

/** The names that lead from a record to one of its fields. */
export type FieldPath = readonly string[];

/** A record of JSON lines. */
export type LogRecord = Readonly<Record<string, unknown>>;

/** An escaped character, or the characters up to the next dot or backslash. */
const TOKEN = /\\(.)|[^.\\]+|\.|\\$/gs;

/** Parses a path such as `request.headers`. A backslash stands before a dot or backslash inside a name. */
export function fieldPath(text: string): FieldPath {
  const names = [""];
  for (const [token, escaped] of text.matchAll(TOKEN)) {
    if (token === ".") names.push("");
    else names[names.length - 1] += escaped ?? token;
  }
  return names;
}

/** Returns a path as `--map` takes it. */
function pathText(path: FieldPath): string {
  return path.map((name) => name.replace(/[\\.]/g, "\\$&")).join(".");
}

function isObject(value: unknown): value is LogRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the value of a field; undefined if a record does not have it. */
export function valueAt(record: unknown, path: FieldPath): unknown {
  let value = record;
  for (const name of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) {
      return undefined;
    }
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/**
 * Returns a field as a text. A list of texts is joined like a field of HTTP, and an object like cookies.
 *
 * @returns undefined if the field is missing, empty, `-`, or no text or number
 */
export function textAt(record: unknown, path: FieldPath | undefined): string | undefined {
  if (path === undefined) return undefined;
  let value = valueAt(record, path);
  if (Array.isArray(value)) value = value.filter(isText).join(", ");
  else if (isObject(value)) {
    const pairs = Object.entries(value).filter(([, each]) => isText(each));
    value = pairs.map(([name, each]) => `${name}=${each}`).join("; ");
  }
  return isText(value) && value !== "" && value !== "-" ? String(value) : undefined;
}

/** Returns a field as a number; undefined if it is no number, or below 0. */
export function numberAt(record: unknown, path: FieldPath | undefined): number | undefined {
  const value = Number(textAt(record, path) ?? Number.NaN);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}

function isText(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}

/** Reads an address. In a list, as of X-Forwarded-For, the first one is the client's. */
export function ipAt(record: LogRecord, path: FieldPath): string | undefined {
  return clientIp(textAt(record, path)?.split(",", 1)[0]?.trim() ?? "");
}

/**
 * The fields in which nginx, Caddy, pino, Cloudflare Logpush and programs with plain names write facts, in the order
 * of trial. Cloudflare's ClientRequestBytes includes the header, so it is no length of a body.
 */
const KNOWN_FIELDS: Readonly<Record<string, readonly string[]>> = {
  time: [
    ...["time", "timestamp", "ts", "@timestamp", "time_iso8601", "msec", "time_local"],
    ...["EdgeStartTimestamp", "EventTimestampMs", "eventTimestamp"],
  ],
  end: ["EdgeEndTimestamp"],
  duration: ["request_time", "duration"],
  "duration-ms": [
    ...["duration_ms", "durationMs", "latency_ms", "latencyMs", "response_time_ms"],
    ...["responseTimeMs", "responseTime", "WallTimeMs", "wallTime", "OriginResponseDurationMs"],
  ],
  method: [
    ...["request_method", "method", "request.method", "req.method", "ClientRequestMethod"],
    ...["Event.Request.Method", "event.request.method"],
  ],
  url: [
    ...["request_uri", "uri", "url", "path", "request.uri", "req.url"],
    ...["ClientRequestURI", "ClientRequestPath", "Event.Request.URL", "event.request.url"],
  ],
  query: ["query", "args"],
  request: ["request"],
  host: [
    "http_host",
    "host",
    "request.host",
    "req.headers.host",
    "req.hostname",
    "ClientRequestHost",
  ],
  ip: [
    ...["client_ip", "remote_addr", "ip", "request.client_ip", "request.remote_ip"],
    ...["req.remoteAddress", "ClientIP", "event.request.headers.cf-connecting-ip"],
  ],
  status: [
    ...["status", "status_code", "res.statusCode", "EdgeResponseStatus"],
    ...["Event.Response.Status", "event.response.status"],
  ],
  country: ["country", "ClientCountry", "event.request.cf.country"],
  asn: ["asn", "ClientASN", "event.request.cf.asn"],
  ja4: ["ja4", "JA4"],
  bot: ["VerifiedBotCategory"],
  "header:user-agent": ["http_user_agent", "user_agent", "ClientRequestUserAgent"],
  "header:referer": ["http_referer", "referer", "ClientRequestReferer"],
  "header:content-length": ["body_bytes_received", "bytes_read"],
  "header:cookie": ["Cookies"],
};

/** Objects with header fields. Cloudflare's objects have only the zone's custom fields. */
const HEADER_OBJECTS = [
  ["header:", ["request.headers", "req.headers", "RequestHeaders", "event.request.headers"]],
  ["response-header:", ["resp_headers", "res.headers", "ResponseHeaders"]],
] as const;

/** Names of facts for header fields. */
const HEADER = /^(?:response-)?header:[\w!#$%&'*+.^`|~-]{1,100}$/;

/** Other names for facts. */
const SYNONYMS: Readonly<Record<string, string>> = {
  path: "url",
  target: "url",
  "user-agent": "header:user-agent",
  "body-bytes": "header:content-length",
};

/** The facts that JSON lines can state. docs/replay.md lists them too. */
const FACTS = [
  ...Object.keys(KNOWN_FIELDS).filter((fact) => !fact.includes(":")),
  ...Object.keys(SYNONYMS),
];

/** The path of the field of each fact, by the fact's name. Names of header fields are in lower case. */
export type FieldMap = ReadonlyMap<string, FieldPath>;

/**
 * Checks the names of facts, and parses the paths.
 *
 * @throws {CommandFailure} if there is no such fact
 */
export function fieldMap(map: Iterable<readonly [fact: string, path: string]>): FieldMap {
  const fields = new Map<string, FieldPath>();
  for (const [given, path] of map) {
    const fact = given.toLowerCase();
    if (!FACTS.includes(fact) && !HEADER.test(fact)) {
      throw new CommandFailure(
        2,
        `--map: there is no fact "${given.slice(0, 100)}". Allowed: ${FACTS.join(", ")}, header:NAME, response-header:NAME.`,
      );
    }
    const parsed = fieldPath(path);
    if (parsed.includes("")) {
      throw new CommandFailure(
        2,
        `--map ${given}: the path "${path.slice(0, 100)}" has an empty name. Allowed: names with dots between them, such as request.uri; a dot inside a name is \\.`,
      );
    }
    fields.set(SYNONYMS[fact] ?? fact, parsed);
  }
  return fields;
}

/** The maximum number of header fields that are found without `--map`. */
const MAX_NAMES = 200;

/** Caddy writes this instead of credentials, so it is the same for all clients. */
const REDACTED = "REDACTED";

/** The facts that tell a request from other records. */
const OF_TARGETS = ["method", "url", "request"] as const;

/** The number of requests in which fields are searched. */
const MAX_REQUESTS = 200;

/**
 * Returns the field of each fact that the requests of a file state. Other records, such as one for the response, say
 * nothing about a request.
 *
 * @param records the first records of the file
 * @param given the fields that `--map` names
 */
export function fieldsOf(records: readonly LogRecord[], given: FieldMap): FieldMap {
  const requests = requestsAmong(records, given).slice(0, MAX_REQUESTS);
  const fields = new Map<string, FieldPath>();
  for (const fact of Object.keys(KNOWN_FIELDS)) {
    const found = knownField(fact, requests);
    if (found) fields.set(fact, found);
  }
  for (const [fact, path] of headerFields(requests)) {
    if (fields.size < MAX_NAMES && !fields.has(fact)) fields.set(fact, path);
  }
  // Caddy writes seconds. Without its field `ts`, the unit is unknown: other programs write milliseconds.
  const isCaddy = fields.get("time")?.join() === "ts";
  if (fields.get("duration")?.join() === "duration" && !isCaddy) fields.delete("duration");
  // A given URL replaces a known request line, and a given request line replaces a known URL.
  if (given.has("url") || given.has("method")) fields.delete("request");
  if (given.has("request")) for (const fact of ["url", "method", "query"]) fields.delete(fact);
  if (given.has("url")) fields.delete("query");
  return new Map([...fields, ...given]);
}

function requestsAmong(records: readonly LogRecord[], given: FieldMap): LogRecord[] {
  const targets = OF_TARGETS.map((fact) => given.get(fact) ?? knownField(fact, records));
  return records.filter((record) => targets.some((path) => textAt(record, path) !== undefined));
}

function knownField(fact: string, records: readonly LogRecord[]): FieldPath | undefined {
  return KNOWN_FIELDS[fact]?.map(fieldPath).find((path) => haveFact(records, fact, path));
}

function* headerFields(records: readonly LogRecord[]): Generator<[fact: string, path: FieldPath]> {
  for (const [prefix, objects] of HEADER_OBJECTS) {
    for (const path of objects.map(fieldPath)) {
      for (const object of records.map((record) => valueAt(record, path)).filter(isObject)) {
        for (const name of Object.keys(object).slice(0, MAX_NAMES)) {
          const isStated = textAt(object, [name]) !== REDACTED;
          if (isStated) yield [prefix + name.toLowerCase(), [...path, name]];
        }
      }
    }
  }
}

/** The facts of every request, each with a check of values, because fields with these names may have other contents. */
const OF_EACH_REQUEST: Readonly<Record<string, (text: string, value: unknown) => boolean>> = {
  time: (_, value) => !Number.isNaN(parseLogTime(value)),
  method: () => true,
  url: (text) => /^(?:\/|https?:\/\/)/i.test(text),
  request: (text) => /^\S{1,32} \S.* HTTP\//s.test(text),
  host: () => true,
  ip: (text) => clientIp(text.split(",", 1)[0]?.trim() ?? "") !== undefined,
  status: (text) => /^\d{3}$/.test(text),
};

/** Whether one of the records states a fact in a field. */
function haveFact(records: readonly LogRecord[], fact: string, path: FieldPath): boolean {
  const isValid = OF_EACH_REQUEST[fact];
  return records.some((record) => {
    const value = valueAt(record, path);
    if (!isValid) return value !== undefined;
    const text = textAt(record, path);
    return text !== undefined && isValid(text, value);
  });
}

/** Parses a line that is a JSON object, perhaps with a comma after it; undefined for any other line. */
export function parseRecord(line: string): LogRecord | undefined {
  const text = line.trimEnd();
  try {
    const record: unknown = JSON.parse(text.endsWith(",") ? text.slice(0, -1) : text);
    return isObject(record) ? record : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the records among lines, at most `max`. */
export function recordsOf(lines: readonly string[], max = Number.POSITIVE_INFINITY): LogRecord[] {
  const records: LogRecord[] = [];
  for (const line of lines) {
    const record = records.length < max ? parseRecord(line) : undefined;
    if (record) records.push(record);
  }
  return records;
}

/** A field that `--map` names, and that none of the first records has. */
export interface AbsentField {
  readonly fact: string;
  /** The mistake, and the fields that exist. */
  readonly reason: string;
}

/**
 * Finds misspelt fields of `--map`. Otherwise, their facts would count as stated, and a report would show guesses as
 * results.
 *
 * @param file the name of the log
 * @param lines its first lines. A program may write messages before its first request
 * @returns the absent fields of facts that only some requests have, such as a header field: another file may have
 *   them
 * @throws {CommandFailure} if none of the records has the field of a fact that each request has
 */
export function absentFields(
  file: string,
  lines: readonly string[],
  given: FieldMap,
): AbsentField[] {
  if (given.size === 0) return [];
  const records = recordsOf(lines);
  const requests = requestsAmong(records, given);
  const searched = (fact: string) =>
    fact in OF_EACH_REQUEST || requests.length === 0 ? records : requests;
  const absent = [...given]
    .filter(([fact, path]) => records.length > 0 && !haveFact(searched(fact), fact, path))
    .map(([fact, path]) => {
      const field = printable(pathText(path).slice(0, 100));
      const nearest = nearestName(field, fieldNames(records));
      const guess = nearest === undefined ? "" : ` Did you mean ${printable(nearest)}?`;
      const reason = `${file}: --map ${fact}=${field}: none of the first records has the field ${field}, or none has a value that can be its fact.${guess} ${describeNames(records)}`;
      return { fact, reason };
    });
  const fault = absent.find(({ fact }) => fact in OF_EACH_REQUEST);
  if (fault) throw new CommandFailure(2, fault.reason);
  return absent;
}

/**
 * Returns a note if some of the first records have a status, but not every request, as in a log with one record when
 * a request comes and another one when it is answered.
 */
export function statusNote(
  file: string,
  lines: readonly string[],
  given: FieldMap,
  facts: ReadonlySet<string>,
): string | undefined {
  if (facts.has("status")) return undefined;
  const path = given.get("status") ?? knownField("status", recordsOf(lines));
  if (path === undefined) return undefined;
  return `${file}: some of the first records have a status in ${printable(pathText(path))}, but not every request. If the log has two records for a request, log one record for a request, when it is answered: otherwise its status and its duration are unknown, and it may count twice.`;
}

/** Says what is missing in a file whose first records are no requests. */
export function describeRecords(lines: readonly string[]): string {
  return `none of the first records has a time, a method and a URL in fields with known names. Name the fields, such as --map time=FIELD --map method=FIELD --map url=FIELD. ${describeNames(recordsOf(lines, LISTED_RECORDS))}`;
}

/** The number of records whose fields are listed, and the maximum depth of nested objects. */
const LISTED_RECORDS = 20;
const MAX_DEPTH = 5;
/** The maximum number and length of the names that a message lists. */
const MAX_LISTED = 40;
const MAX_NAME_LENGTH = 80;

/** Returns the paths of the fields in the first records, also of fields in nested objects. */
function fieldNames(records: readonly LogRecord[]): string[] {
  return [...new Set(records.slice(0, LISTED_RECORDS).flatMap((record) => namesIn(record, [])))];
}

function namesIn(object: LogRecord, path: FieldPath): string[] {
  return Object.entries(object).flatMap(([name, value]) => {
    const nested = [...path, name];
    return isObject(value) && nested.length < MAX_DEPTH
      ? namesIn(value, nested)
      : [pathText(nested)];
  });
}

function describeNames(records: readonly LogRecord[]): string {
  const names = fieldNames(records);
  const listed = names
    .slice(0, MAX_LISTED)
    .map((name) => printable(name.slice(0, MAX_NAME_LENGTH)));
  const left = names.length - listed.length;
  const more = left > 0 ? ` and ${left} more` : "";
  return `The first records have the fields ${listed.join(", ")}${more}.`;
}
