import { RequestLine } from "./access-line.ts";
import {
  type FieldMap,
  type FieldPath,
  type LogRecord,
  numberAt,
  parseRecord,
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
  type LogFacts,
  type LogRequest,
  requestTarget,
} from "./log-request.ts";

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
