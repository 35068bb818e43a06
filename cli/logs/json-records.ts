import { readRequestLine } from "./access-line.ts";
import {
  type FieldMap,
  type FieldPath,
  ipAt,
  type LogRecord,
  numberAt,
  parseRecord,
  textAt,
  valueAt,
} from "./json-fields.ts";
import {
  hostName,
  isHttpMethod,
  type LineContent,
  type LineParser,
  type LogClientFacts,
  type LogFacts,
  type LogRequest,
  type RequestTarget,
  requestTarget,
} from "./log-request.ts";
import { parseLogTime } from "./log-time.ts";

/** A line with only the bracket of a list around all records. */
const BRACKET = /^\s*[[\]]\s*$/;

/** Facts that state how long a request took. */
const OF_DURATION = ["end", "duration", "duration-ms"];

/** Fields with the time at which a request began. Most programs write the time at which it ended. */
const START_FIELD = /start|^EventTimestamp(?:Ms)?$/i;

type Paths = readonly (readonly [name: string, path: FieldPath])[];

/** Parses lines that are JSON objects, each with the fields of one request. */
export class RecordParser implements LineParser {
  readonly #fields: FieldMap;
  readonly #host: string | undefined;
  readonly #withDurations: boolean;
  readonly #timeIsStart: boolean;
  readonly #headers: Paths;
  readonly #responseHeaders: Paths;
  /** Facts of every request that a request so far does not state. */
  readonly #unstated = new Set<string>(["host"]);
  #isFirst = true;

  /**
   * @param host the host of requests whose records have no host
   * @param withDurations whether to read how long requests took
   */
  constructor(fields: FieldMap, host: string | undefined, withDurations = false) {
    this.#fields = fields;
    this.#host = host;
    this.#withDurations = withDurations && OF_DURATION.some((fact) => fields.has(fact));
    this.#timeIsStart = fields.has("end") || START_FIELD.test(fields.get("time")?.at(-1) ?? "");
    const named = (prefix: string): Paths =>
      [...fields]
        .filter(([fact]) => fact.startsWith(prefix))
        .map(([fact, path]) => [fact.slice(prefix.length), path]);
    this.#headers = named("header:");
    this.#responseHeaders = named("response-header:");
  }

  parse(line: string): LineContent {
    const record = parseRecord(line);
    if (record === undefined) return BRACKET.test(line) ? undefined : jsonFault(line);
    const request = this.#readTarget(record);
    if (typeof request !== "object") return request;
    const fields = this.#fields;
    const time = fields.get("time");
    const at = time ? parseLogTime(valueAt(record, time)) : Number.NaN;
    if (Number.isNaN(at)) return `has no time in ${time?.join(".") ?? "a known field"}`;
    const ipPath = fields.get("ip");
    const ip = ipPath && ipAt(record, ipPath);
    if (ipPath && ip === undefined) return `has no IP address in ${ipPath.join(".")}`;
    const status = statusIn(record, fields.get("status"));
    const durationMs = this.#withDurations ? this.#durationOf(record, at) : undefined;
    const named = hostName(textAt(record, fields.get("host")) ?? "");
    const host = request.host ?? named ?? this.#host;
    if (this.#isFirst) this.#unstated.clear();
    this.#isFirst = false;
    if (status === undefined) this.#unstated.add("status");
    if (durationMs === undefined) this.#unstated.add("duration");
    if (host === undefined) this.#unstated.add("host");
    return {
      at: this.#timeIsStart ? at : at - (durationMs ?? 0),
      durationMs,
      method: request.method,
      target: request.target,
      host,
      ip,
      status,
      headers: textsOf(record, this.#headers),
      responseHeaders: textsOf(record, this.#responseHeaders),
      cf: clientFacts(record, fields),
    };
  }

  /** @returns milliseconds; undefined if the record states no duration, or one longer than the time since 1970 */
  #durationOf(record: LogRecord, at: number): number | undefined {
    const fields = this.#fields;
    const end = fields.get("end");
    return [
      end ? parseLogTime(valueAt(record, end)) - at : Number.NaN,
      numberAt(record, fields.get("duration-ms")) ?? Number.NaN,
      (numberAt(record, fields.get("duration")) ?? Number.NaN) * 1000,
    ].find((ms) => ms >= 0 && ms <= at);
  }

  /** Returns undefined for a record of another kind, such as a message of the program that wrote the log. */
  #readTarget(
    record: LogRecord,
  ): (RequestTarget & { readonly method: string }) | string | undefined {
    const fields = this.#fields;
    const url = textAt(record, fields.get("url"));
    const method = textAt(record, fields.get("method"));
    if (url === undefined && method === undefined) {
      return readRequestLine(textAt(record, fields.get("request")) ?? "");
    }
    if (url === undefined) return "has a method, but no URL";
    if (method === undefined) return "has a URL, but no method";
    if (!isHttpMethod(method)) return "has a method that is not HTTP";
    const target = requestTarget(url, textAt(record, fields.get("query")));
    return target ? { method, ...target } : "has no URL that begins with / or https://";
  }

  /** Sorts by the starts of requests, as far as the units of the fields agree. */
  get sortCommand(): string {
    const time = jqPath(this.#fields.get("time") ?? ["time"]);
    const duration = this.#fields.get("duration-ms") ?? this.#fields.get("duration");
    const isEnd = this.#withDurations && !this.#timeIsStart && duration;
    const key = isEnd ? `(${time}|tonumber) - (${jqPath(duration)}|tonumber)` : time;
    return `jq -cs 'sort_by(${key})[]'`;
  }

  facts(): LogFacts {
    const facts = new Set([...this.#fields.keys(), "host"]);
    for (const fact of OF_DURATION) facts.delete(fact);
    if (this.#withDurations) facts.add("duration");
    for (const fact of this.#unstated) facts.delete(fact);
    if (this.#host !== undefined) facts.add("host");
    return facts;
  }
}

/** Returns why a line is no record, with the cure of the usual mistakes. */
export function jsonFault(line: string): string {
  const text = line.trim();
  if (/^\{.*\\x[\da-f]{2}/i.test(text)) {
    return "is no JSON object, because it has \\x: write escape=json in nginx's log_format";
  }
  if (/^\[\s*\{.*\]$/.test(text)) {
    return "is no JSON object, but a list: pass it through jq -c '.[]'";
  }
  if (/^\{\s*(?:"[^"]*"\s*:.*[^}])?$/.test(text)) {
    return "is no JSON object, but the start of one: pass the log through jq -c";
  }
  return "is no JSON object";
}

function jqPath(path: FieldPath): string {
  const isPlain = path.every((name) => /^[A-Za-z_]\w*$/.test(name));
  return `.${path.map((name) => (isPlain ? name : JSON.stringify(name))).join(".")}`;
}

function statusIn(record: LogRecord, path: FieldPath | undefined): number | undefined {
  const status = numberAt(record, path);
  return status !== undefined && status >= 100 && status <= 999 ? status : undefined;
}

function textsOf(record: LogRecord, paths: Paths): ReadonlyMap<string, string> | undefined {
  let texts: Map<string, string> | undefined;
  for (const [name, path] of paths) {
    const text = textAt(record, path);
    if (text === undefined) continue;
    texts ??= new Map();
    texts.set(name, text);
  }
  return texts;
}

/**
 * Returns whether the client is a verified bot, or the bot's category. Some logs write `true` and `false` as texts, and
 * `-` for an empty text.
 */
function botIn(record: LogRecord, path: FieldPath | undefined): unknown {
  const bot = path && valueAt(record, path);
  if (bot === "true" || bot === "false") return bot === "true";
  return bot === "-" ? "" : bot;
}

function clientFacts(record: LogRecord, fields: FieldMap): LogRequest["cf"] {
  const country = textAt(record, fields.get("country"))?.toUpperCase();
  const asn = numberAt(record, fields.get("asn"));
  const ja4 = textAt(record, fields.get("ja4"));
  const bot = botIn(record, fields.get("bot"));
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
