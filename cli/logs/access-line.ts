import { isIPv4 } from "node:net";
import { parseAddress } from "../../src/config/address.ts";
import {
  clientIp,
  hostName,
  isHttpMethod,
  type LineContent,
  type LineParser,
  type LogFacts,
  ownText,
  type RequestTarget,
  requestTarget,
} from "./log-request.ts";
import { parseLogTime } from "./log-time.ts";

const SPACE = 32;
const QUOTE = 34;
const OPENING_BRACKET = 91;
const BACKSLASH = 92;

/**
 * Returns the index of the quote that ends a quoted field. A quote inside the field has a backslash before it. But some
 * servers escape nothing, so a space or the line's end must follow the last quote.
 *
 * @param from the index of the field's first character
 * @returns -1 if the line ends inside the field
 */
function closingQuote(line: string, from: number): number {
  let quote = line.indexOf('"', from);
  while (quote !== -1) {
    const isEnd = quote + 1 === line.length || line.charCodeAt(quote + 1) === SPACE;
    if (isEnd && !isEscaped(line, quote, from)) return quote;
    quote = line.indexOf('"', quote + 1);
  }
  return -1;
}

/** Whether an odd number of backslashes is before a character. */
function isEscaped(line: string, index: number, from: number): boolean {
  let start = index;
  while (start > from && line.charCodeAt(start - 1) === BACKSLASH) start--;
  return (index - start) % 2 === 1;
}

/**
 * Escapes of Apache and nginx: `\"`, `\\` and `\xHH`. A match is a run of escapes, because several may form one
 * character of UTF-8.
 */
const ESCAPES = /(?:\\x[\dA-Fa-f]{2}|\\["\\])+/g;

const UTF_8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

/** Returns the text of a quoted field without its escapes. */
function unescaped(field: string): string {
  if (!field.includes("\\")) return field;
  return field.replace(ESCAPES, (run) => {
    const hex = run.replace(/\\(["\\])/g, (_, sign) => (sign === '"' ? "22" : "5c"));
    const bytes = hex.replaceAll("\\x", "").match(/../g) ?? [];
    return UTF_8.decode(Uint8Array.from(bytes, (byte) => Number.parseInt(byte, 16)));
  });
}

/** The method, the path with its query, and the host of an absolute URL. */
interface RequestLine extends RequestTarget {
  readonly method: string;
}

/**
 * Reads a request line such as `GET /search?q=1 HTTP/1.1`.
 *
 * @returns undefined for a text without a path, such as `-` after a timeout; a text with the reason if the line cannot
 *   be read
 */
export function readRequestLine(text: string): RequestLine | string | undefined {
  if (text === "" || text === "-") return undefined;
  // A request line of HTTP/0.9 has no version.
  const [method = "", target, version = "HTTP/", more] = text.split(" ", 4);
  if (target === undefined || !isHttpMethod(method)) return "its request is not HTTP";
  if (!version.startsWith("HTTP/") || more !== undefined) {
    return "its request has more than a method, a path and a version";
  }
  if (target === "*" || method === "CONNECT") return undefined;
  const read = requestTarget(target);
  if (read === undefined) return "its request has no path";
  return { method: ownText(method), target: ownText(read.target), host: read.host };
}

/**
 * Reads the header fields that Combined Log Format adds to Common Log Format. Some servers cut off long lines, so the
 * line may end within these fields.
 *
 * @returns undefined if the line is not in Combined Log Format
 */
function headersOf(line: string, lengthAt: number): ReadonlyMap<string, string> | undefined {
  const refererAt = line.indexOf(" ", lengthAt) + 2;
  if (refererAt === 1 || line.charCodeAt(refererAt - 1) !== QUOTE) return undefined;
  const headers = new Map<string, string>();
  const refererEnd = closingQuote(line, refererAt);
  if (refererEnd === -1) return headers;
  const agentAt = refererEnd + 3;
  if (line.charCodeAt(agentAt - 1) !== QUOTE) return undefined;
  const agentEnd = closingQuote(line, agentAt);
  const add = (name: string, field: string) => {
    if (field !== "-") headers.set(name, ownText(unescaped(field)));
  };
  add("referer", line.slice(refererAt, refererEnd));
  add("user-agent", line.slice(agentAt, agentEnd === -1 ? line.length : agentEnd));
  return headers;
}

/** The fields before the time. */
interface Client {
  readonly ip: string;
  /** The virtual host. */
  readonly host: string | undefined;
  /** The index of the first character after the address. */
  readonly end: number;
}

/** A field, which may be a list with commas, and the first word of the next field. */
const FIELDS = /^([^\s,]+)((?:, ?[^\s,]+)*) ([^\s,]+)/;

const NO_ADDRESS = "does not begin with an IP address, or with a host and an IP address";
const TWO_ADDRESSES =
  "begins with two addresses, and does not say which one is the client's: log only the client's, or a comma between them";

/**
 * Reads the host, if there is one, and the client's address. In a list of addresses, as of X-Forwarded-For, the first
 * one is the client's.
 *
 * @returns a text with the reason if there is no address
 */
function clientOf(line: string, isAfterHost = false): Client | string {
  const [, first, others, next] = FIELDS.exec(line) ?? [];
  if (first === undefined || next === undefined) {
    return line.includes(" ") ? NO_ADDRESS : "has no fields";
  }
  const ip = canonicalIp(first);
  if (ip !== undefined) {
    // Either address may be a proxy's, by which all clients would count as one. A virtual host has a port.
    const isVirtualHost = others === "" && next !== "-" && canonicalIp(next) !== undefined;
    if (!isVirtualHost) return { ip, host: undefined, end: first.length };
    if (!/[\d\]]:\d+$/.test(first) || parseAddress(first)) return TWO_ADDRESSES;
  }
  const host = others === "" && /[a-z\d]/i.test(first) ? hostName(first) : undefined;
  if (host === undefined || isAfterHost) return NO_ADDRESS;
  const from = first.length + 1;
  const client = clientOf(line.slice(from), true);
  return typeof client === "string" ? client : { ...client, host, end: from + client.end };
}

/** The number of cached texts, and their maximum length in characters. */
const CACHED = 4096;
const MAX_CACHED = 50;

/** Returns a function's result for a text, from the cache if the text repeats. */
function cached<Result>(
  cache: Map<string, Result>,
  text: string,
  read: (text: string) => Result,
): Result {
  const known = cache.get(text);
  if (known !== undefined) return known;
  const result = read(text);
  if (cache.size >= CACHED) cache.clear();
  if (text.length <= MAX_CACHED) cache.set(ownText(text), result);
  return result;
}

const addresses = new Map<string, string | undefined>();
const times = new Map<string, number>();

function canonicalIp(text: string): string | undefined {
  return isIPv4(text) ? ownText(text) : cached(addresses, text, clientIp);
}

/** The distance from the opening bracket to the closing one, in the usual format of times. */
const TIME_DISTANCE = 27;

const STATUS_AND_LENGTH = / (\d{3}) [\d-]/y;

/**
 * Parses lines of Apache and nginx in Common or Combined Log Format. A virtual host may stand before the other
 * fields, and unknown fields after them:
 *
 *     [HOST[:PORT] ]ADDRESS[, ADDRESS …] IDENTITY USER [TIME] "REQUEST" STATUS BYTES[ "REFERER" "USER AGENT"[ …]]
 */
export class AccessLineParser implements LineParser {
  /** Compares the year, the month, the day and the time after the bracket. The sort is stable. */
  readonly sortCommand = "LC_ALL=C sort -s -t'[' -k2.8,2.11n -k2.4,2.6M -k2.1,2.2n -k2.13,2.20";
  readonly #host: string | undefined;
  /** The number of lines in this format, also of those whose request is not HTTP. */
  #lines = 0;
  #withoutHeaders = 0;
  #withoutVirtualHost = 0;
  #requests = 0;
  #requestsWithoutHost = 0;

  /** @param host the host of requests whose lines have no host */
  constructor(host: string | undefined) {
    this.#host = host;
  }

  /** Whether a line was in this format. */
  get isRecognised(): boolean {
    return this.#lines > 0;
  }

  parse(line: string): LineContent {
    const client = clientOf(line);
    if (typeof client === "string") return client;
    const { ip, end } = client;
    // Searches the end of the time first, because the user name may have a bracket.
    const close = line.indexOf('] "', end);
    const isUsual = line.charCodeAt(close - TIME_DISTANCE) === OPENING_BRACKET;
    const open = isUsual ? close - TIME_DISTANCE : line.lastIndexOf("[", close);
    if (close === -1 || open < end)
      return "has no time in brackets with a request in quotes after it";
    const at = cached(times, line.slice(open + 1, close), parseLogTime);
    if (Number.isNaN(at)) return "has no time such as [17/May/2015:10:05:03 +0000]";
    const requestEnd = closingQuote(line, close + 3);
    if (requestEnd === -1) return "has no end of its request in quotes";
    STATUS_AND_LENGTH.lastIndex = requestEnd + 1;
    const status = Number(STATUS_AND_LENGTH.exec(line)?.[1] ?? Number.NaN);
    if (Number.isNaN(status)) return "has no status and length after the request";
    const request = readRequestLine(unescaped(line.slice(close + 3, requestEnd)));
    const headers = headersOf(line, requestEnd + 6);
    this.#lines++;
    if (!headers) this.#withoutHeaders++;
    if (client.host === undefined) this.#withoutVirtualHost++;
    if (typeof request !== "object") return request;
    const host = request.host ?? client.host ?? this.#host;
    this.#requests++;
    if (host === undefined) this.#requestsWithoutHost++;
    // Without a response, the status is 000.
    return { ...request, at, host, ip, status: status === 0 ? undefined : status, headers };
  }

  facts(): LogFacts {
    const facts = new Set(["ip", "status"]);
    // If a log begins with lines that are not HTTP, these show what the later ones have.
    const withoutHost = this.#requests > 0 ? this.#requestsWithoutHost : this.#withoutVirtualHost;
    if (this.#host !== undefined || (this.#lines > 0 && withoutHost === 0)) facts.add("host");
    if (this.#lines > 0 && this.#withoutHeaders === 0) {
      facts.add("header:user-agent").add("header:referer");
    }
    return facts;
  }
}
