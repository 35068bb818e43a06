import { nearestName } from "../../src/config/explain/nearest-name.ts";
import { printable } from "../print/text.ts";
import { RequestLine } from "./access-line.ts";
import {
  type FieldMap,
  type FieldPath,
  isValid,
  type LogRecord,
  numberAt,
  recordTime,
  textAt,
  valueAt,
} from "./fields.ts";
import {
  clientIp,
  hostName,
  isHttpMethod,
  type LineContent,
  type LineParser,
  type LogClientFacts,
  LogError,
  type LogFacts,
  type LogRequest,
  requestTarget,
} from "./log-request.ts";

/** The records whose fields are listed, and how deep objects in objects are read. */
const MAX_RECORDS = 20;
const MAX_DEPTH = 5;
/** How many names are found, how many a message lists, and the maximum length of a listed name. */
const MAX_FOUND = 500;
const MAX_LISTED = 40;
const MAX_LENGTH = 80;

/** Returns a path as `--map` takes it. */
export function pathText(path: FieldPath): string {
  return path.map((name) => name.replace(/[\\.]/g, "\\$&")).join(".");
}

/** Returns the paths of the fields of the first records, those of nested objects too. */
function fieldNames(records: readonly LogRecord[]): string[] {
  const names = new Set<string>();
  for (const record of records.slice(0, MAX_RECORDS)) addNames(record, [], names);
  return [...names];
}

function addNames(object: object, path: FieldPath, names: Set<string>): void {
  for (const [name, value] of Object.entries(object)) {
    if (names.size >= MAX_FOUND) return;
    const nested = [...path, name];
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    if (isObject && nested.length < MAX_DEPTH) addNames(value, nested, names);
    else names.add(pathText(nested));
  }
}

/** Returns a list of names for a message. */
function listedNames(names: readonly string[]): string {
  const listed = names.slice(0, MAX_LISTED).map((name) => printable(name.slice(0, MAX_LENGTH)));
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
 * @throws {LogError} if none of the records has the field of a fact that each request has
 */
export function absentFields(
  file: string,
  records: readonly LogRecord[],
  given: FieldMap,
): AbsentField[] {
  if (records.length === 0) return [];
  const absent = [...given]
    .filter(([fact, path]) => !records.some((record) => states(fact, record, path)))
    .map(([fact, path]) => ({ fact, reason: `${file}: ${reasonOf(fact, path, records)}` }));
  const fault = absent.find(({ fact }) => OF_EACH_REQUEST.has(fact));
  if (fault) throw new LogError(fault.reason);
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
  return `--map ${fact}=${shown}: none of the first records has the field ${shown}.${guess} The first records have the fields ${listedNames(names)}.`;
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
export function missingFields(
  file: string,
  format: "json" | "logpush",
  records: readonly LogRecord[],
  fields: FieldMap,
): LogError {
  const isMissing = (fact: string) =>
    !fields.has(fact) && (fact === "time" || !fields.has("request"));
  const missing = NEEDED.filter(({ fact }) => isMissing(fact));
  const options = (missing.length > 0 ? missing : NEEDED).map(({ fact }) => `--map ${fact}=FIELD`);
  const names = `The first records have the fields ${listedNames(fieldNames(records))}.`;
  if (format === "logpush" && missing.length > 0) {
    const lacked = missing.map(({ logpush }) => logpush).join(" and ");
    return new LogError(
      `${file}: Cloudflare's records have no ${lacked}. Add it to the fields of the Logpush job, or name another field: ${options.join(" ")}. ${names}`,
    );
  }
  const lacked =
    missing.length > 0
      ? `has ${listOf(missing.map(({ name }) => name))} in a field with a known name`
      : "has a time, a method and a URL";
  return new LogError(
    `${file}: none of the first records ${lacked}. Name the fields, such as ${options.join(" ")}. ${names}`,
  );
}

function listOf(names: readonly string[]): string {
  const [last = "", ...others] = [...names].reverse();
  return others.length === 0 ? last : `${others.reverse().join(", ")} or ${last}`;
}

/** The start and the end of a list around all records. */
const BRACKET = /^\s*[[\]]\s*$/;

/** Parses lines that are JSON objects, each with the fields of one request. */
export class RecordParser implements LineParser {
  readonly #fields: FieldMap;
  readonly #host: string | undefined;
  readonly #headers: readonly [name: string, path: FieldPath][];
  readonly #responseHeaders: readonly [name: string, path: FieldPath][];
  readonly #cookies: readonly [name: string, path: FieldPath][];
  readonly #requestLine = new RequestLine();
  #hasHosts = false;

  /** @param host the host of requests whose records state none */
  constructor(fields: FieldMap, host: string | undefined) {
    this.#fields = fields;
    this.#host = host;
    this.#headers = named(fields, "header:");
    this.#responseHeaders = named(fields, "response-header:");
    this.#cookies = named(fields, "cookie:");
  }

  parse(text: string, from = 0, to = text.length): LineContent {
    const line = text.slice(from, to);
    const record = parseRecord(line);
    if (record !== undefined) return this.read(record);
    return BRACKET.test(line) ? undefined : "is no JSON object";
  }

  /** Returns what a record is. */
  read(record: LogRecord): LineContent {
    const target = this.#readTarget(record);
    if (typeof target !== "object") return target;
    const fields = this.#fields;
    const time = fields.get("time");
    const at = time ? recordTime(valueAt(record, time)) : Number.NaN;
    if (Number.isNaN(at)) return `has no time in ${time?.join(".") ?? "a known field"}`;
    const ipPath = fields.get("ip");
    const ip = ipPath && ipAt(record, ipPath);
    if (ipPath && ip === undefined) return `has no IP address in ${ipPath.join(".")}`;
    const status = numberAt(record, fields.get("status"));
    return {
      at,
      method: target.method,
      target: target.target,
      host: hostName(textAt(record, fields.get("host")) ?? "") ?? target.host ?? this.#host,
      ip,
      status: status !== undefined && status >= 100 && status <= 999 ? status : undefined,
      userAgent: textAt(record, fields.get("user-agent")),
      headers: this.#readHeaders(record),
      responseHeaders: textsOf(record, this.#responseHeaders),
      cf: clientFacts(record, fields),
      bodyBytes: numberAt(record, fields.get("body-bytes")),
    };
  }

  /** Returns undefined for a record of another kind, such as a message of the program that wrote the log. */
  #readTarget(
    record: LogRecord,
  ): { method: string; target: string; host: string | undefined } | string | undefined {
    const fields = this.#fields;
    const url = textAt(record, fields.get("url"));
    const method = textAt(record, fields.get("method"));
    if (url === undefined && method === undefined) {
      const line = textAt(record, fields.get("request"));
      if (line === undefined) return undefined;
      const content = this.#requestLine.read(line, 0, line.length);
      if (content !== true) return content;
      return {
        method: this.#requestLine.method,
        target: this.#requestLine.target,
        host: undefined,
      };
    }
    if (url === undefined) return "has a method, but no URL";
    if (method === undefined) return "has a URL, but no method";
    if (!isHttpMethod(method)) return "has a method that is not HTTP";
    const target = requestTarget(url, textAt(record, fields.get("query")));
    if (target === undefined) return "has no URL that begins with / or https://";
    this.#hasHosts ||= target.host !== undefined;
    return { method, ...target };
  }

  #readHeaders(record: LogRecord): ReadonlyMap<string, string> | undefined {
    const headers = textsOf(record, this.#headers);
    const cookies = textsOf(record, this.#cookies);
    if (!cookies) return headers;
    const pairs = [...cookies].map(([name, value]) => `${name}=${value}`);
    return new Map([...(headers ?? []), ["cookie", pairs.join("; ")]]);
  }

  facts(): LogFacts {
    const has = (fact: string) => this.#fields.has(fact);
    const headers = new Set(this.#headers.map(([name]) => name));
    if (has("user-agent")) headers.add("user-agent");
    if (this.#cookies.length > 0) headers.add("cookie");
    return {
      ip: has("ip"),
      host: has("host") || this.#hasHosts || this.#host !== undefined,
      status: has("status"),
      country: has("country"),
      asn: has("asn"),
      bots: has("bot"),
      ja4: has("ja4"),
      bodyBytes: has("body-bytes"),
      headers,
      responseHeaders: new Set(this.#responseHeaders.map(([name]) => name)),
    };
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

/** Returns the names and paths of facts that begin with a prefix. */
function named(fields: FieldMap, prefix: string): [name: string, path: FieldPath][] {
  return [...fields]
    .filter(([fact]) => fact.startsWith(prefix))
    .map(([fact, path]) => [fact.slice(prefix.length), path]);
}

function textsOf(
  record: LogRecord,
  paths: readonly [name: string, path: FieldPath][],
): ReadonlyMap<string, string> | undefined {
  let texts: Map<string, string> | undefined;
  for (const [name, path] of paths) {
    const text = textAt(record, path);
    if (text === undefined) continue;
    texts ??= new Map();
    texts.set(name, text);
  }
  return texts;
}

/** Reads an address. Of several, as in X-Forwarded-For, the first is the client's. */
function ipAt(record: LogRecord, path: FieldPath): string | undefined {
  const text = textAt(record, path);
  return text === undefined ? undefined : clientIp(text.split(",", 1)[0]?.trim() ?? "");
}

function clientFacts(record: LogRecord, fields: FieldMap): LogRequest["cf"] {
  const country = textAt(record, fields.get("country"))?.toUpperCase();
  const asn = numberAt(record, fields.get("asn"));
  const ja4 = textAt(record, fields.get("ja4"));
  const botPath = fields.get("bot");
  const bot = botPath && valueAt(record, botPath);
  if (country === undefined && !asn && ja4 === undefined && bot === undefined) return undefined;
  const isFlag = typeof bot === "boolean";
  const botManagement: LogClientFacts["botManagement"] = {
    ...(ja4 !== undefined && { ja4 }),
    ...(isFlag && { verifiedBot: bot }),
  };
  return {
    ...(country !== undefined && { country }),
    ...(asn && { asn }),
    ...((ja4 !== undefined || isFlag) && { botManagement }),
    // An empty text means that the client is no verified bot.
    ...(typeof bot === "string" && { verifiedBotCategory: bot }),
  };
}
