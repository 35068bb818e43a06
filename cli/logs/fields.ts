import { parseIsoTime } from "../../src/config/calendar.ts";
import { nearestName } from "../../src/config/explain/nearest-name.ts";
import { CommandFailure } from "../command-failure.ts";
import { printable } from "../print/text.ts";
import { AccessTime, clockAt } from "./access-line.ts";
import { clientIp, ownText } from "./log-request.ts";

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
 * @throws {CommandFailure} if there is no such fact
 */
export function fieldMap(map: Iterable<readonly [fact: string, path: string]>): FieldMap {
  const fields = new Map<string, FieldPath>();
  for (const [given, path] of map) {
    const fact = given.toLowerCase();
    if (!(FACTS as readonly string[]).includes(fact) && !HEADER.test(fact)) {
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
function jsonFields(records: readonly LogRecord[], given: FieldMap): FieldMap {
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
function logpushFields(records: readonly LogRecord[], given: FieldMap): FieldMap {
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
function isValid(fact: string, record: LogRecord, path: FieldPath): boolean {
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

/** Returns the object that a line is; undefined if it is none. There may be a comma after it. */
export function parseRecord(line: string): LogRecord | undefined {
  const text = line.trimEnd();
  try {
    const record: unknown = JSON.parse(text.endsWith(",") ? text.slice(0, -1) : text);
    if (typeof record !== "object" || record === null || Array.isArray(record)) return undefined;
    return record as LogRecord;
  } catch {
    return undefined;
  }
}

/** The first records by which fields are found. */
const MAX_RECORDS = 200;

/**
 * Returns the fields of the facts.
 *
 * @param records the first records of the file
 * @param given the fields that `--map` names
 */
export function fieldsOf(
  format: "json" | "logpush",
  records: readonly LogRecord[],
  given: FieldMap,
): FieldMap {
  return format === "logpush" ? logpushFields(records, given) : jsonFields(records, given);
}

/** Returns the records of the first lines. */
export function recordsOf(lines: readonly string[], max = MAX_RECORDS): LogRecord[] {
  return lines
    .slice(0, max)
    .map(parseRecord)
    .filter((record) => record !== undefined);
}

/** What the first records of a file show about its fields. */
export interface RecordStart {
  /** Fields that `--map` names, and that none of the first records has. */
  readonly absent: readonly AbsentField[];
  /** What a reader must know about the records. */
  readonly notes: readonly string[];
}

/**
 * Checks the fields of the first records of a file.
 *
 * @param lines the first lines
 * @param given the fields that `--map` names
 * @param mustHaveRequests whether one of the lines must be a request
 * @throws {CommandFailure} if none of the records has a field that each request needs
 */
export function checkStart(
  file: string,
  format: "json" | "logpush",
  lines: readonly string[],
  given: FieldMap,
  mustHaveRequests: boolean,
): RecordStart {
  const records = recordsOf(lines);
  // A program may write messages before its first request.
  const absent = given.size === 0 ? [] : absentFields(file, recordsOf(lines, lines.length), given);
  const fields = fieldsOf(format, records, given);
  if (mustHaveRequests) throw missingFields(file, format, records, fields);
  return { absent, notes: zoneNotes(file, records, fields) };
}

function zoneNotes(file: string, records: readonly LogRecord[], fields: FieldMap): string[] {
  const path = fields.get("time");
  if (!path || !records.some((record) => lacksZone(valueAt(record, path)))) return [];
  return [
    `${file}: the times in the field ${pathText(path)} have no zone. They are taken as UTC. If they are not, log them with a zone, such as 2026-11-22T10:00:00+01:00.`,
  ];
}

/** The records whose fields are listed, and how deep objects in objects are read. */
const LISTED_RECORDS = 20;
const MAX_DEPTH = 5;
/** How many names are found, how many a message lists, and the maximum length of a listed name. */
const MAX_FOUND = 500;
const MAX_LISTED = 40;
const MAX_NAME_LENGTH = 80;

/** Returns a path as `--map` takes it. */
function pathText(path: FieldPath): string {
  return path.map((name) => name.replace(/[\\.]/g, "\\$&")).join(".");
}

/** Returns the paths of the fields of the first records, those of nested objects too. */
function fieldNames(records: readonly LogRecord[]): string[] {
  const names = new Set<string>();
  for (const record of records.slice(0, LISTED_RECORDS)) addFieldNames(record, [], names);
  return [...names];
}

function addFieldNames(object: object, path: FieldPath, names: Set<string>): void {
  for (const [name, value] of Object.entries(object)) {
    if (names.size >= MAX_FOUND) return;
    const nested = [...path, name];
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    if (isObject && nested.length < MAX_DEPTH) addFieldNames(value, nested, names);
    else names.add(pathText(nested));
  }
}

/** Returns a list of names for a message. */
function listedNames(names: readonly string[]): string {
  const listed = names
    .slice(0, MAX_LISTED)
    .map((name) => printable(name.slice(0, MAX_NAME_LENGTH)));
  const left = names.length - listed.length;
  return left > 0 ? `${listed.join(", ")} and ${left} more` : listed.join(", ");
}

/** Facts that each request has. Without a field of one of them, a log has no such fact at all. */
const OF_EACH_REQUEST: ReadonlySet<string> = new Set([
  ...["time", "method", "url", "request", "host", "ip", "status"],
]);

/** A field that `--map` names, and that none of the first records has. */
export interface AbsentField {
  readonly fact: string;
  /** What is wrong, and which fields there are. */
  readonly reason: string;
}

/**
 * Finds misspelt fields of `--map`. Their facts would otherwise count as stated, so that a report would show
 * guesses as results.
 *
 * @param file the name of the log
 * @param records the first records of the log
 * @returns the fields of facts that only some requests have, such as a header field: another file may have them
 * @throws {CommandFailure} if none of the records has the field of a fact that each request has
 */
function absentFields(file: string, records: readonly LogRecord[], given: FieldMap): AbsentField[] {
  if (records.length === 0) return [];
  const absent = [...given]
    .filter(([fact, path]) => !records.some((record) => states(fact, record, path)))
    .map(([fact, path]) => ({ fact, reason: `${file}: ${reasonOf(fact, path, records)}` }));
  const fault = absent.find(({ fact }) => OF_EACH_REQUEST.has(fact));
  if (fault) throw new CommandFailure(2, fault.reason);
  return absent;
}

function states(fact: string, record: LogRecord, path: FieldPath): boolean {
  const needsValue = OF_EACH_REQUEST.has(fact) && fact !== "host" && fact !== "method";
  return needsValue ? isValid(fact, record, path) : valueAt(record, path) !== undefined;
}

function reasonOf(fact: string, path: FieldPath, records: readonly LogRecord[]): string {
  const field = pathText(path);
  const shown = printable(field.slice(0, 100));
  if (records.some((record) => valueAt(record, path) !== undefined)) {
    return `--map ${fact}=${shown}: the field ${shown} of the first records has no value that can be the ${fact} of a request.`;
  }
  const names = fieldNames(records);
  const nearest = nearestName(field, names);
  const guess = nearest === undefined ? "" : ` Did you mean ${printable(nearest)}?`;
  return `--map ${fact}=${shown}: none of the first records has the field ${shown}.${guess} ${describeNames(names)}`;
}

function describeNames(names: readonly string[]): string {
  if (names.length === 0) return "The first records have no fields.";
  return `The first records have the fields ${listedNames(names)}.`;
}

/** What each request needs, and where Cloudflare's records have it. */
const NEEDED = [
  { fact: "time", name: "a time", logpush: "EdgeStartTimestamp" },
  { fact: "method", name: "a method", logpush: "ClientRequestMethod" },
  { fact: "url", name: "a URL", logpush: "ClientRequestURI" },
] as const;

/**
 * Returns the error for records of which none is a request.
 *
 * @param fields the fields that were found and given
 */
function missingFields(
  file: string,
  format: "json" | "logpush",
  records: readonly LogRecord[],
  fields: FieldMap,
): CommandFailure {
  const isMissing = (fact: string) =>
    !fields.has(fact) && (fact === "time" || !fields.has("request"));
  const missing = NEEDED.filter(({ fact }) => isMissing(fact));
  const options = (missing.length > 0 ? missing : NEEDED).map(({ fact }) => `--map ${fact}=FIELD`);
  const names = describeNames(fieldNames(records));
  if (format === "logpush" && missing.length > 0) {
    const lacked = missing.map(({ logpush }) => logpush).join(" and ");
    return new CommandFailure(
      2,
      `${file}: Cloudflare's records have no ${lacked}. Add it to the fields of the Logpush job, or name another field: ${options.join(" ")}. ${names}`,
    );
  }
  const lacked =
    missing.length > 0
      ? `has ${listOf(missing.map(({ name }) => name))} in a field with a known name`
      : "has a time, a method and a URL";
  return new CommandFailure(
    2,
    `${file}: none of the first records ${lacked}. Name the fields, such as ${options.join(" ")}. ${names}`,
  );
}

function listOf(names: readonly string[]): string {
  const [last = "", ...others] = [...names].reverse();
  return others.length === 0 ? last : `${others.reverse().join(", ")} or ${last}`;
}
