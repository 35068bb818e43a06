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
  requestTarget,
} from "./log-request.ts";
import { parseLogTime } from "./log-time.ts";

/** A line with only the bracket of a list around all records. */
const BRACKET = /^\s*[[\]]\s*$/;

/** Facts that state how long a request took. */
const OF_DURATION = ["end", "duration", "duration-ms"];

/** Fields with the time at which a request began. Most programs write the time at which it ended. */
const START_FIELD = /start|^EventTimestampMs$/i;

type Paths = readonly (readonly [name: string, path: FieldPath])[];

/** Parses lines that are JSON objects, each with the fields of one request. */
export class RecordParser implements LineParser {
  readonly #fields: FieldMap;
  readonly #host: string | undefined;
  readonly #withDurations: boolean;
  readonly #timeIsStart: boolean;
  readonly #headers: Paths;
  readonly #responseHeaders: Paths;

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
    if (record === undefined) return BRACKET.test(line) ? undefined : "is no JSON object";
    const request = this.#readTarget(record);
    if (typeof request !== "object") return request;
    const fields = this.#fields;
    const time = fields.get("time");
    const at = time ? parseLogTime(valueAt(record, time)) : Number.NaN;
    if (Number.isNaN(at)) return `has no time in ${time?.join(".") ?? "a known field"}`;
    const ipPath = fields.get("ip");
    const ip = ipPath && ipAt(record, ipPath);
    if (ipPath && ip === undefined) return `has no IP address in ${ipPath.join(".")}`;
    const status = numberAt(record, fields.get("status"));
    const durationMs = this.#withDurations ? this.#durationOf(record, at) : undefined;
    return {
      at: this.#timeIsStart ? at : at - (durationMs ?? 0),
      durationMs,
      method: request.method,
      target: request.target,
      host: hostName(textAt(record, fields.get("host")) ?? "") ?? request.host ?? this.#host,
      ip,
      status: status !== undefined && status >= 100 && status <= 999 ? status : undefined,
      headers: textsOf(record, this.#headers),
      responseHeaders: textsOf(record, this.#responseHeaders),
      cf: clientFacts(record, fields),
      length: line.length,
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
  ): { method: string; target: string; host?: string | undefined } | string | undefined {
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

  facts(first: readonly LogRequest[]): LogFacts {
    const facts = new Set(this.#fields.keys());
    for (const fact of OF_DURATION) facts.delete(fact);
    if (this.#withDurations) facts.add("duration");
    if (this.#host !== undefined || first.some(({ host }) => host !== undefined)) facts.add("host");
    return facts;
  }
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
