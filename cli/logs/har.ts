import { JSONParser, TokenType } from "@streamparser/json";
import { printable } from "../print/text.ts";
import { recordTime } from "./fields.ts";
import type { RequestReader } from "./lines.ts";
import {
  clientIp,
  isHttpMethod,
  type LogFacts,
  type LogRequest,
  requestTarget,
} from "./log-request.ts";
import type { LogCounts } from "./progress.ts";

/** The values of an entry that are read. Others, such as bodies, are never held together in memory. */
const HAR_PATHS = [
  "startedDateTime",
  "time",
  "_clientIPAddress",
  "request.method",
  "request.url",
  "request.bodySize",
  "request.headers.*",
  "response.status",
  "response.headers.*",
] as const;

/** The maximum length of all header fields of an entry, in characters. */
const MAX_LENGTH = 1024 * 1024;

type Values = Partial<Record<(typeof HAR_PATHS)[number], unknown>>;

/** Collects the values of one entry of a HAR file. */
class HarEntry {
  readonly #values: Values = {};
  readonly #headers = new Map<string, string>();
  readonly #responseHeaders = new Map<string, string>();
  #length = 0;

  /** Adds a value by its path in the entry. Elements of lists have the path of the list. */
  add(path: string, value: unknown): void {
    if (path === "request.headers") this.#addHeader(this.#headers, value);
    else if (path === "response.headers") this.#addHeader(this.#responseHeaders, value);
    else this.#values[path as keyof Values] = value;
  }

  #addHeader(headers: Map<string, string>, field: unknown): void {
    const { name, value } = (field ?? {}) as { name?: unknown; value?: unknown };
    // HTTP/2 sends the method and the URL in fields that begin with a colon.
    if (typeof name !== "string" || typeof value !== "string" || name.startsWith(":")) return;
    this.#length += name.length + value.length;
    if (this.#length > MAX_LENGTH) return;
    const key = name.toLowerCase();
    const before = headers.get(key);
    const separator = key === "cookie" ? "; " : ", ";
    headers.set(key, before === undefined ? value : before + separator + value);
  }

  /**
   * Returns the request, or why there is none.
   *
   * @param host the host of a URL that has none
   */
  request(host: string | undefined): LogRequest | string {
    const values = this.#values;
    const { "request.method": method, "request.url": url } = values;
    if (typeof method !== "string" || typeof url !== "string")
      return "has no request with method and url";
    if (!isHttpMethod(method)) return "has a method that is not HTTP";
    const target = requestTarget(url);
    if (!target) return "has a URL that begins with neither http nor https";
    const at = recordTime(values.startedDateTime);
    if (Number.isNaN(at)) return "has no time in startedDateTime";
    if (this.#length > MAX_LENGTH) return "has header fields with more than 1 MiB";
    const address = this.#headers.get("cf-connecting-ip") ?? values._clientIPAddress;
    return {
      at,
      method,
      target: target.target,
      host: target.host ?? host,
      ip: typeof address === "string" ? clientIp(address) : undefined,
      status: within(values["response.status"], 100, 999),
      userAgent: this.#headers.get("user-agent"),
      headers: this.#headers,
      responseHeaders: this.#responseHeaders,
      cf: undefined,
      bodyBytes: within(values["request.bodySize"], 0, Number.MAX_SAFE_INTEGER),
      durationMs: within(values.time, 0, Number.MAX_SAFE_INTEGER),
    };
  }

  /** The start of the entry as text, for reports. */
  get text(): string {
    const { "request.method": method, "request.url": url } = this.#values;
    return `${typeof method === "string" ? method : ""} ${typeof url === "string" ? url : ""}`;
  }
}

function within(value: unknown, min: number, max: number): number | undefined {
  return typeof value === "number" && value >= min && value <= max ? value : undefined;
}

/** The depth of the list `log.entries`. */
const ENTRIES_DEPTH = 3;
/** HAR needs 7 levels. Deeper values, such as in fields of one program, are limited by memory. */
const MAX_DEPTH = 100;

/** Follows where the tokens of a HAR file are. */
class HarPosition {
  /** The number of the entry that contains the last token; 0 before the first entry. */
  entry = 0;
  #depth = 0;
  #isInEntries = false;
  #lastText: unknown;
  /** The last names in the file's object, and in the object `log`. */
  readonly #names: unknown[] = [];

  /**
   * @returns true after the last token of an entry
   * @throws {Error} if values are nested too deeply
   */
  isEntryEnd(token: TokenType, value: unknown): boolean {
    switch (token) {
      case TokenType.LEFT_BRACE:
      case TokenType.LEFT_BRACKET:
        this.#open(token);
        return false;
      case TokenType.RIGHT_BRACE:
      case TokenType.RIGHT_BRACKET:
        this.#depth--;
        if (this.#depth < ENTRIES_DEPTH) this.#isInEntries = false;
        return this.#isInEntries && this.#depth === ENTRIES_DEPTH;
      case TokenType.COLON:
        if (this.#depth < ENTRIES_DEPTH) this.#names[this.#depth] = this.#lastText;
        return false;
      case TokenType.COMMA:
        return false;
      default:
        this.#lastText = this.#depth < ENTRIES_DEPTH ? value : undefined;
        return this.#startsEntry();
    }
  }

  #open(token: TokenType): void {
    const isEntries =
      token === TokenType.LEFT_BRACKET &&
      this.#depth === ENTRIES_DEPTH - 1 &&
      this.#names[1] === "log" &&
      this.#names[2] === "entries";
    this.#startsEntry();
    if (++this.#depth > MAX_DEPTH) throw new Error("its values are nested too deeply");
    if (isEntries) this.#isInEntries = true;
  }

  #startsEntry(): boolean {
    const isEntry = this.#isInEntries && this.#depth === ENTRIES_DEPTH;
    if (isEntry) this.entry++;
    return isEntry;
  }
}

/** The maximum length of a single text, such as the body of a response, in bytes. */
const MAX_TEXT_BYTES = 64 * 1024 * 1024;

/** The number of names before an entry's own names: the root, `log`, `entries`, and the entry's number. */
const NAMES_BEFORE = 4;

/** Reads the entries of a HAR file one by one. If the file breaks off, the entries before that count. */
export class HarReader implements RequestReader {
  readonly #file: string;
  readonly #counts: LogCounts;
  readonly #host: string | undefined;
  readonly #parser: JSONParser;
  readonly #position = new HarPosition();
  #entry = new HarEntry();
  /** The number of entries that have been read to their end. */
  #ended = 0;
  #requests: LogRequest[] = [];
  #bytesSinceToken = 0;
  #hasFailed = false;
  #withCredentials = 0;
  /** Facts of the requests that have been read. */
  #total = 0;
  #withIp = 0;
  #withBodyBytes = 0;

  /**
   * @param file the name of the file, for the report
   * @param host the host of URLs that have none
   */
  constructor(file: string, counts: LogCounts, host: string | undefined) {
    this.#file = file;
    this.#counts = counts;
    this.#host = host;
    this.#parser = new JSONParser({
      paths: HAR_PATHS.map((path) => `$.log.entries.*.${path}`),
      // Otherwise, the parser would keep all entries.
      keepStack: false,
    });
    this.#parser.onValue = ({ value, key, stack }) => {
      const names = stack.slice(NAMES_BEFORE).map((item) => item.key);
      this.#entry.add((names.at(-1) === "headers" ? names : [...names, key]).join("."), value);
    };
    this.#parser.onToken = ({ token, value }) => {
      this.#bytesSinceToken = 0;
      if (this.#position.isEntryEnd(token, value)) this.#endEntry(undefined);
    };
  }

  push(chunk: Buffer): LogRequest[] {
    if (this.#hasFailed) return [];
    this.#bytesSinceToken += chunk.length;
    try {
      this.#parser.write(chunk);
      if (this.#bytesSinceToken > MAX_TEXT_BYTES) throw new Error("a text is longer than 64 MiB");
    } catch (error) {
      this.#fail((error as Error).message);
    }
    return this.#take();
  }

  end(): LogRequest[] {
    if (!this.#hasFailed && !this.#parser.isEnded) this.#fail("it ends too early");
    if (this.#total > 0 && this.#withCredentials === 0) {
      this.#counts.addNote(
        `No request of ${this.#file} has the header fields cookie or authorization. Browsers leave them out of HAR files unless the export includes sensitive data.`,
      );
    }
    return this.#take();
  }

  /** What the requests that have been read so far state. */
  facts(): LogFacts {
    const hasRequests = this.#total > 0;
    return {
      isMappable: false,
      ip: hasRequests && this.#withIp === this.#total,
      host: true,
      status: true,
      country: false,
      asn: false,
      bots: false,
      ja4: false,
      bodyBytes: hasRequests && this.#withBodyBytes === this.#total,
      headers: "all",
      responseHeaders: "all",
    };
  }

  #take(): LogRequest[] {
    const requests = this.#requests;
    this.#requests = [];
    return requests;
  }

  /** @param problem why the entry is broken, if that is known already */
  #endEntry(problem: string | undefined): void {
    const content = problem ?? this.#entry.request(this.#host);
    this.#ended++;
    this.#counts.lines++;
    if (typeof content === "string") {
      this.#counts.addBroken(this.#file, this.#ended, content, this.#entry.text);
    } else {
      this.#requests.push(content);
      this.#total++;
      if (content.ip !== undefined) this.#withIp++;
      if (content.bodyBytes !== undefined) this.#withBodyBytes++;
      const { headers } = content;
      if (headers?.has("cookie") || headers?.has("authorization")) this.#withCredentials++;
    }
    this.#entry = new HarEntry();
  }

  #fail(reason: string): void {
    this.#hasFailed = true;
    if (this.#position.entry > this.#ended) this.#endEntry("the file breaks off in it");
    this.#counts.addIncomplete(
      `${this.#file} could be read only up to entry ${this.#ended}: ${printable(withoutValues(reason)).slice(0, 200)}.`,
    );
  }
}

/** The parser's messages have the text that it did not expect in parentheses. */
function withoutValues(message: string): string {
  return message.split(" (", 1)[0] ?? "";
}
