import { parseIsoTime } from "../../src/config/calendar.ts";
import { AccessTime, clockAt } from "./access-line.ts";
import { clientIp, LogError, ownText } from "./log-request.ts";

/** The names that lead from a record to one of its fields. */
export type FieldPath = readonly string[];

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
 * Returns a field as a text. A list of texts is joined, as fields of HTTP are.
 *
 * @returns undefined if the field is missing, empty, `-`, or no text or number
 */
export function textAt(record: unknown, path: FieldPath | undefined): string | undefined {
  if (path === undefined) return undefined;
  const value = valueAt(record, path);
  const text = Array.isArray(value) ? value.filter(isText).join(", ") : value;
  return isText(text) && text !== "" && text !== "-" ? String(text) : undefined;
}

/** Returns a field as a number that is not negative; undefined if it is none. */
export function numberAt(record: unknown, path: FieldPath | undefined): number | undefined {
  const text = textAt(record, path);
  const value = text === undefined ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}

function isText(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}

/** What the fields of JSON lines can state. The same list is in docs/logs.md. */
const FACTS = [
  "time",
  "method",
  "url",
  "path",
  "target",
  "query",
  "request",
  "host",
  "ip",
  "status",
  "user-agent",
  "country",
  "asn",
  "ja4",
  "bot",
  "body-bytes",
] as const;

/** Names of facts for header fields. */
const HEADER = /^(?:response-)?header:[\w!#$%&'*+.^`|~-]{1,100}$/;

/** Other names of the same facts. */
const SYNONYMS: Readonly<Record<string, string>> = { path: "url", target: "url" };

/** The path of the field of each fact, by the fact's name. Names of header fields are in lower case. */
export type FieldMap = ReadonlyMap<string, FieldPath>;

/**
 * Checks the names of facts, and parses the paths.
 *
 * @throws {LogError} if there is no such fact
 */
export function fieldMap(map: Iterable<readonly [fact: string, path: string]>): FieldMap {
  const fields = new Map<string, FieldPath>();
  for (const [given, path] of map) {
    const fact = given.toLowerCase();
    if (!(FACTS as readonly string[]).includes(fact) && !HEADER.test(fact)) {
      throw new LogError(
        `--map: there is no fact "${given.slice(0, 100)}". Allowed: ${FACTS.join(", ")}, header:NAME, response-header:NAME.`,
      );
    }
    const parsed = fieldPath(path);
    if (parsed.includes("")) {
      throw new LogError(
        `--map ${given}: the path "${path.slice(0, 100)}" has an empty name. Allowed: names with dots between them, such as request.uri; a dot inside a name is \\.`,
      );
    }
    fields.set(SYNONYMS[fact] ?? fact, parsed);
  }
  return fields;
}

/** The fields of Cloudflare's http_requests. ClientRequestBytes includes the header, so it is no body length. */
const LOGPUSH_FIELDS = fieldMap([
  ["time", "EdgeStartTimestamp"],
  ["method", "ClientRequestMethod"],
  ["url", "ClientRequestURI"],
  ["host", "ClientRequestHost"],
  ["ip", "ClientIP"],
  ["status", "EdgeResponseStatus"],
  ["user-agent", "ClientRequestUserAgent"],
  ["header:referer", "ClientRequestReferer"],
  ["country", "ClientCountry"],
  ["asn", "ClientASN"],
  ["ja4", "JA4"],
  ["bot", "VerifiedBotCategory"],
]);

/** Where nginx, Caddy, pino and programs with plain names write facts, in the order in which the paths are tried. */
const JSON_FIELDS: Readonly<Record<string, readonly string[]>> = {
  time: ["time", "timestamp", "ts", "@timestamp", "time_iso8601", "msec", "time_local"],
  method: ["request_method", "method", "request.method", "req.method"],
  url: ["request_uri", "uri", "url", "path", "request.uri", "req.url"],
  query: ["query", "args"],
  request: ["request"],
  host: ["http_host", "host", "request.host", "req.headers.host"],
  ip: [
    "client_ip",
    "remote_addr",
    "ip",
    "request.client_ip",
    "request.remote_ip",
    "req.remoteAddress",
  ],
  status: ["status", "status_code", "res.statusCode"],
  "user-agent": [
    "http_user_agent",
    "user_agent",
    "request.headers.User-Agent",
    "req.headers.user-agent",
  ],
  "header:referer": ["http_referer", "referer", "request.headers.Referer", "req.headers.referer"],
  country: ["country"],
  asn: ["asn"],
  ja4: ["ja4"],
  "body-bytes": ["body_bytes_received", "bytes_read"],
};

/** Objects with the header fields of requests, and of responses. */
const HEADER_OBJECTS: readonly string[] = ["request.headers", "req.headers"];
const RESPONSE_HEADER_OBJECTS: readonly string[] = ["resp_headers", "res.headers"];

/** The same objects of Cloudflare. They have the fields that the zone's custom fields name. */
const LOGPUSH_HEADERS = "RequestHeaders";
const LOGPUSH_RESPONSE_HEADERS = "ResponseHeaders";
const LOGPUSH_COOKIES = "Cookies";

/** A number with this size or more is in the finer unit: 10¹¹ seconds are 3,000 years, and 10¹¹ ms are 3 years. */
const MILLISECONDS_FROM = 1e11;
const MICROSECONDS_FROM = 1e14;
const NANOSECONDS_FROM = 1e17;

/** The last time that a `Date` can have. */
const MAX_MS = 8.64e15;

const NUMBER = /^\d{1,20}(?:\.\d{1,20})?$/;
const ISO =
  /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\d{0,20} ?(?:Z|([+-])(0\d|1[0-4]):?([0-5]\d))?$/i;

const accessTime = new AccessTime();

/** The last day in ISO 8601, because parsing days would take most of the time. */
let lastDay = "";
let lastDayMs = Number.NaN;

/**
 * Reads a time: a number of seconds, milliseconds, microseconds or nanoseconds since the Unix epoch, ISO 8601, or the
 * format of access logs. ISO 8601 without a zone is taken as UTC.
 *
 * @returns milliseconds since the Unix epoch; NaN if the value is no time
 */
export function recordTime(value: unknown): number {
  if (typeof value === "number") return inMilliseconds(value);
  if (typeof value !== "string") return Number.NaN;
  if (NUMBER.test(value)) return inMilliseconds(Number(value));
  const [, day, clock = "", fraction, sign, hours, minutes] = ISO.exec(value) ?? [];
  if (day === undefined) return accessTime.read(value, 0, value.length);
  if (day !== lastDay) {
    lastDay = ownText(day);
    lastDayMs = parseIsoTime(`${day}T00:00:00Z`);
  }
  const ms = fraction === undefined ? 0 : Number(fraction.padEnd(3, "0").slice(0, 3));
  const at = lastDayMs + clockAt(clock, 0) + ms;
  if (sign === undefined) return at;
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return sign === "-" ? at + offset : at - offset;
}

/** Whether a value is a time without a zone, which is taken as UTC. */
export function lacksZone(value: unknown): boolean {
  if (typeof value !== "string" || value.endsWith("Z") || value.endsWith("z")) return false;
  const match = ISO.exec(value);
  return match !== null && match[4] === undefined;
}

function inMilliseconds(value: number): number {
  if (!(value >= 0)) return Number.NaN;
  let ms = value * 1000;
  if (value >= NANOSECONDS_FROM) ms = value / 1e6;
  else if (value >= MICROSECONDS_FROM) ms = value / 1000;
  else if (value >= MILLISECONDS_FROM) ms = value;
  return ms <= MAX_MS ? ms : Number.NaN;
}

/** The maximum number of header fields and cookies that are found without `--map`. */
const MAX_NAMES = 200;

/** Caddy writes this instead of credentials, so it is the same for all clients. */
const REDACTED = "REDACTED";

/** A record of JSON lines. */
export type LogRecord = Readonly<Record<string, unknown>>;

/**
 * Finds the fields of the records of a file.
 *
 * @param records the first records of the file
 * @param given the fields that `--map` names
 */
export function jsonFields(records: readonly LogRecord[], given: FieldMap): FieldMap {
  const fields = new Map<string, FieldPath>();
  for (const [fact, paths] of Object.entries(JSON_FIELDS)) {
    const candidates = paths.map(fieldPath);
    const found = candidates.find((path) => records.some((record) => isValid(fact, record, path)));
    if (found) fields.set(fact, found);
  }
  addNames(fields, records, "header:", HEADER_OBJECTS);
  addNames(fields, records, "response-header:", RESPONSE_HEADER_OBJECTS);
  return withGiven(fields, given);
}

/** Finds the fields of Cloudflare's records. A job writes only the fields that were chosen for it. */
export function logpushFields(records: readonly LogRecord[], given: FieldMap): FieldMap {
  const fields = new Map<string, FieldPath>();
  for (const [fact, path] of LOGPUSH_FIELDS) {
    if (records.some((record) => valueAt(record, path) !== undefined)) fields.set(fact, path);
  }
  if (!fields.has("url")) fields.set("url", ["ClientRequestPath"]);
  addNames(fields, records, "header:", [LOGPUSH_HEADERS]);
  addNames(fields, records, "response-header:", [LOGPUSH_RESPONSE_HEADERS]);
  addNames(fields, records, "cookie:", [LOGPUSH_COOKIES]);
  return withGiven(fields, given);
}

/** Whether records are those of Cloudflare's http_requests. */
export function isLogpush(records: readonly LogRecord[]): boolean {
  return records.some(
    (record) =>
      Object.hasOwn(record, "EdgeStartTimestamp") ||
      (Object.hasOwn(record, "ClientRequestMethod") && Object.hasOwn(record, "ClientRequestHost")),
  );
}

/** Adds the fields that the user names. A given URL replaces a request line, and the other way round. */
function withGiven(fields: Map<string, FieldPath>, given: FieldMap): FieldMap {
  if (given.has("url") || given.has("method")) fields.delete("request");
  if (given.has("request")) for (const fact of ["url", "method", "query"]) fields.delete(fact);
  if (given.has("url")) fields.delete("query");
  for (const [fact, path] of given) fields.set(fact, path);
  return fields;
}

const URL_START = /^(?:\/|https?:\/\/)/i;
const REQUEST_LINE = /^\S{1,32} \S.* HTTP\//s;

/** Whether a field has a value of a fact, because programs use the same names for different facts. */
export function isValid(fact: string, record: LogRecord, path: FieldPath): boolean {
  const text = textAt(record, path);
  if (text === undefined) return false;
  if (fact === "time") return !Number.isNaN(recordTime(valueAt(record, path)));
  if (fact === "url") return URL_START.test(text);
  if (fact === "request") return REQUEST_LINE.test(text);
  if (fact === "ip") return clientIp(text.split(",", 1)[0]?.trim() ?? "") !== undefined;
  if (fact === "status") return /^\d{3}$/.test(text);
  return true;
}

/** Adds a fact for each name in objects such as `request.headers`. */
function addNames(
  fields: Map<string, FieldPath>,
  records: readonly LogRecord[],
  prefix: string,
  objects: readonly string[],
): void {
  for (const path of objects.map(fieldPath)) {
    for (const record of records) {
      const object = valueAt(record, path);
      if (typeof object !== "object" || object === null || Array.isArray(object)) continue;
      for (const name of Object.keys(object).slice(0, MAX_NAMES)) {
        const fact = prefix + (prefix === "cookie:" ? name : name.toLowerCase());
        const isUnknown = textAt(record, [...path, name]) === REDACTED || fields.has(fact);
        if (!isUnknown && fields.size < MAX_NAMES) fields.set(fact, [...path, name]);
      }
    }
  }
}
