import { clientIp } from "./client-ip.ts";
import {
  HEADER_OBJECTS,
  JSON_FIELDS,
  LOGPUSH_COOKIES,
  LOGPUSH_FIELDS,
  LOGPUSH_HEADERS,
  LOGPUSH_RESPONSE_HEADERS,
  RESPONSE_HEADER_OBJECTS,
} from "./field-defaults.ts";
import type { FieldMap } from "./field-map.ts";
import { type FieldPath, fieldPath, textAt, valueAt } from "./field-path.ts";
import { recordTime } from "./record-time.ts";

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
  if (given.has("duration")) fields.delete("duration-seconds");
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
