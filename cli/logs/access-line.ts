import { isIPv4 } from "node:net";
import {
  clientIp,
  hostName,
  isHttpMethod,
  type LineContent,
  type LineParser,
  type LogFacts,
  type LogRequest,
  ownText,
  requestTarget,
} from "./log-request.ts";
import { AccessTime } from "./log-time.ts";

const SPACE = 32;
const QUOTE = 34;
const DASH = 45;
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

/** The method and the path of a request, with its query. */
interface Target {
  readonly method: string;
  readonly target: string;
}

/**
 * Reads a request line such as `GET /search?q=1 HTTP/1.1`.
 *
 * @returns undefined for a text without a path, such as `-` after a timeout; a text with the reason if the line cannot
 *   be read
 */
export function readRequestLine(text: string): Target | string | undefined {
  if (text === "" || text === "-") return undefined;
  const methodEnd = text.indexOf(" ");
  const method = methodEnd === 3 && text.startsWith("GET") ? "GET" : text.slice(0, methodEnd);
  if (methodEnd === -1 || (method !== "GET" && !isHttpMethod(method))) {
    return "its request is not HTTP";
  }
  // A request line of HTTP/0.9 has no version.
  const space = text.indexOf(" ", methodEnd + 1);
  const targetEnd = space === -1 ? text.length : space;
  if (space !== -1 && (!text.startsWith("HTTP/", space + 1) || text.includes(" ", space + 1))) {
    return "its request has more than a method, a path and a version";
  }
  const target = text.slice(methodEnd + 1, targetEnd);
  if (target.startsWith("/")) return { method: ownText(method), target: ownText(target) };
  if (target === "*" || method === "CONNECT") return undefined;
  const absolute = requestTarget(target);
  if (absolute === undefined) return "its request has no path";
  return { method: ownText(method), target: ownText(absolute.target) };
}

/** A request, and the index of its response's length in its line. */
interface AccessLine extends Omit<LogRequest, "headers" | "length"> {
  readonly line: string;
  readonly lengthAt: number;
}

/** The request of a line. Few rules read its header fields, so these are parsed only when they are needed. */
class AccessRequest implements LogRequest {
  readonly at: number;
  readonly method: string;
  readonly target: string;
  readonly host: string | undefined;
  readonly ip: string | undefined;
  readonly status: number | undefined;
  readonly #line: string;
  readonly #lengthAt: number;
  #headers: ReadonlyMap<string, string> | undefined | null = null;

  constructor({ at, method, target, host, ip, status, line, lengthAt }: AccessLine) {
    this.at = at;
    this.method = method;
    this.target = target;
    this.host = host;
    this.ip = ip;
    this.status = status;
    this.#line = line;
    this.#lengthAt = lengthAt;
  }

  get length(): number {
    return this.#line.length;
  }

  /** Undefined if the line is not in Combined Log Format. */
  get headers(): ReadonlyMap<string, string> | undefined {
    if (this.#headers === null) this.#headers = headersOf(this.#line, this.#lengthAt);
    return this.#headers;
  }
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

/** The distance from the opening bracket to the closing one, in the usual format of times. */
const TIME_DISTANCE = 27;

/** The maximum number of cached addresses, and of cached hosts. */
const CACHED = 65_536;

/** A result of reading an address or a host; undefined if a text is neither. */
type Name = { readonly text: string | undefined };

/**
 * Parses lines of Apache and nginx in Common or Combined Log Format. A virtual host may stand before the other
 * fields, and unknown fields after them:
 *
 *     [HOST[:PORT] ]ADDRESS IDENTITY USER [TIME] "REQUEST" STATUS BYTES[ "REFERER" "USER AGENT"[ …]]
 *
 * A regular expression with a group for each field would take three times as long.
 */
export class AccessLineParser implements LineParser {
  readonly #host: string | undefined;
  readonly #time = new AccessTime();
  readonly #ips = new Map<string, Name>();
  readonly #hosts = new Map<string, Name>();

  /** @param host the host of requests whose lines have no host */
  constructor(host: string | undefined) {
    this.#host = host;
  }

  parse(line: string): LineContent {
    const client = this.#clientOf(line);
    if (typeof client === "string") return client;
    const { ip, host, end } = client;
    // Searches the end of the time first, because the user name may have a bracket.
    const close = line.indexOf('] "', end);
    const isUsual = line.charCodeAt(close - TIME_DISTANCE) === OPENING_BRACKET;
    const open = isUsual ? close - TIME_DISTANCE : line.lastIndexOf("[", close);
    if (close === -1 || open < end)
      return "has no time in brackets with a request in quotes after it";
    const at = this.#time.read(line, open + 1, close);
    if (Number.isNaN(at)) return "has no time such as [17/May/2015:10:05:03 +0000]";
    const requestAt = close + 3;
    const requestEnd = closingQuote(line, requestAt);
    if (requestEnd === -1) return "has no end of its request in quotes";
    const request = readRequestLine(unescaped(line.slice(requestAt, requestEnd)));
    if (typeof request !== "object") return request;
    const status = statusAt(line, requestEnd + 2);
    if (status === -1) return "has no status and length after the request";
    return new AccessRequest({
      at,
      method: request.method,
      target: request.target,
      host,
      ip,
      // Without a response, the status is 000.
      status: status === 0 ? undefined : status,
      line,
      lengthAt: requestEnd + 6,
    });
  }

  /** @returns the client, the host, and the index after the address; a text with the reason if there is no address */
  #clientOf(line: string): { ip: string; host: string | undefined; end: number } | string {
    const firstEnd = line.indexOf(" ");
    if (firstEnd === -1) return "has no fields";
    // Usually, the second field is "-". If it is an address, the first field is a virtual host.
    if (line.charCodeAt(firstEnd + 1) !== DASH) {
      const end = line.indexOf(" ", firstEnd + 1);
      const ip = end === -1 ? undefined : this.#ipOf(line.slice(firstEnd + 1, end));
      if (ip !== undefined) {
        return { ip, host: cached(this.#hosts, line.slice(0, firstEnd), hostName), end };
      }
    }
    const ip = this.#ipOf(line.slice(0, firstEnd));
    if (ip === undefined) {
      return "does not begin with an IP address, or with a host and an IP address";
    }
    return { ip, host: this.#host, end: firstEnd };
  }

  /** Returns one string for all lines with an address, because lookups of a known string take less time. */
  #ipOf(text: string): string | undefined {
    return cached(this.#ips, text, canonicalIp);
  }

  facts(first: readonly LogRequest[]): LogFacts {
    const facts = new Set(["ip", "status"]);
    const all = (states: (request: LogRequest) => boolean) =>
      first.length > 0 && first.every(states);
    if (this.#host !== undefined || all(({ host }) => host !== undefined)) facts.add("host");
    if (all(({ headers }) => headers !== undefined)) {
      facts.add("header:user-agent").add("header:referer");
    }
    return facts;
  }
}

function canonicalIp(text: string): string | undefined {
  return isIPv4(text) ? text : clientIp(text);
}

/** The maximum length of a cached text, in characters. Longer texts would need much memory. */
const MAX_CACHED = 300;

/**
 * Returns a function's result for a text, from the cache if the text repeats. An LruCache would have parts of lines as
 * keys, which keep chunks of the log in memory.
 */
function cached(
  cache: Map<string, Name>,
  text: string,
  read: (text: string) => string | undefined,
): string | undefined {
  const known = cache.get(text);
  if (known !== undefined) return known.text;
  const key = ownText(text);
  const name = { text: read(key) };
  if (cache.size >= CACHED) cache.clear();
  if (key.length <= MAX_CACHED) cache.set(key, name);
  return name.text;
}

/** Reads a status of three digits with a space and a length after it. @returns -1 if there is none */
function statusAt(line: string, index: number): number {
  let status = 0;
  for (let at = index; at < index + 3; at++) {
    const digit = line.charCodeAt(at) - 48;
    if (!(digit >= 0 && digit <= 9)) return -1;
    status = status * 10 + digit;
  }
  const length = line.charCodeAt(index + 4);
  const isLength = length === DASH || (length >= 48 && length <= 57);
  return line.charCodeAt(index + 3) === SPACE && isLength ? status : -1;
}
