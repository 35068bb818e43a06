import { closingQuote, unescaped } from "./access-quotes.ts";
import { AccessTime } from "./access-time.ts";
import { clientIp, isIPv4At } from "./client-ip.ts";
import { hostName } from "./host-name.ts";
import type { LineContent, LineParser } from "./log-line.ts";
import type { LogFacts } from "./log-request.ts";
import { RequestLine } from "./request-line.ts";
import { ownText, TextCache } from "./text-cache.ts";

const NO_HEADERS: ReadonlySet<string> = new Set();
const COMBINED_HEADERS: ReadonlySet<string> = new Set(["user-agent", "referer"]);

const SPACE = 32;
const QUOTE = 34;
const DASH = 45;
const CLOSING_BRACKET = 93;

/** The distance from the opening bracket to the closing one, in the usual format of times. */
const USUAL_TIME_END = 27;

/**
 * Parses lines of Apache and nginx in Common or Combined Log Format, also with a virtual host before them, and
 * with other fields after them:
 *
 *     [HOST[:PORT] ]ADDRESS IDENTITY USER [TIME] "REQUEST" STATUS BYTES[ "REFERER" "USER AGENT"[ …]]
 *
 * A regular expression with a group for each field would take three times as long.
 */
export class AccessLineParser implements LineParser {
  readonly #host: string | undefined;
  readonly #time = new AccessTime();
  readonly #requestLine = new RequestLine();
  readonly #ips = new TextCache((text) => clientIp(text) ?? null);
  readonly #hosts = new TextCache(hostName);
  readonly #userAgents = new TextCache((text) => text);
  readonly #referers = new TextCache((text) => new Map([["referer", text]]));
  #requests = 0;
  #withHost = 0;
  #combined = 0;

  /** @param host the host of requests whose lines state none */
  constructor(host: string | undefined) {
    this.#host = host;
  }

  parse(line: string): LineContent {
    const addressEnd = line.indexOf(" ");
    if (addressEnd === -1) return "has no fields";
    let ip = this.#ipAt(line, 0, addressEnd);
    let host = this.#host;
    let isAfterHost = false;
    // Usually, the second field is "-". If it is an address, the first field is a virtual host.
    if (line.charCodeAt(addressEnd + 1) !== DASH || line.charCodeAt(addressEnd + 2) !== SPACE) {
      const end = line.indexOf(" ", addressEnd + 1);
      const second = end === -1 ? null : this.#ipAt(line, addressEnd + 1, end);
      if (second !== null) {
        ip = second;
        host = this.#hosts.get(line.slice(0, addressEnd));
        isAfterHost = true;
      }
    }
    if (ip === null) return "does not begin with an IP address, or with a host and an IP address";
    const content = this.#parseFromTime(line, ip, host, addressEnd);
    if (isAfterHost && typeof content === "object") this.#withHost++;
    return content;
  }

  /** Most addresses are IPv4 in its canonical notation. Finding these in a cache would take longer. */
  #ipAt(line: string, from: number, to: number): string | null {
    const text = line.slice(from, to);
    return isIPv4At(line, from, to) ? ownText(text) : this.#ips.get(text);
  }

  #parseFromTime(
    line: string,
    ip: string,
    host: string | undefined,
    addressEnd: number,
  ): LineContent {
    let open = line.indexOf("[", addressEnd);
    let close = open + USUAL_TIME_END;
    let at =
      line.charCodeAt(close) === CLOSING_BRACKET
        ? this.#time.read(line, open + 1, close)
        : Number.NaN;
    if (Number.isNaN(at)) {
      // The time has fractions, or the user name has a bracket.
      close = line.indexOf('] "', addressEnd);
      open = line.lastIndexOf("[", close);
      if (close === -1 || open < addressEnd)
        return "has no time in brackets with a request after it";
      at = this.#time.read(line, open + 1, close);
      if (Number.isNaN(at)) return "has no time such as [17/May/2015:10:05:03 +0000]";
    }
    return this.#parseFromRequest(line, at, ip, host, close + 2);
  }

  #parseFromRequest(
    line: string,
    at: number,
    ip: string,
    host: string | undefined,
    open: number,
  ): LineContent {
    const end = line.charCodeAt(open) === QUOTE ? closingQuote(line, open + 1) : -1;
    if (end === -1) return "has no request in quotes after the time";
    const hasEscapes = line.includes("\\");
    const content = this.#readRequest(line, open + 1, end, hasEscapes);
    if (content !== true) return content;
    const status = statusAt(line, end + 2);
    if (status === -1) return "has no status and length after the request";
    let userAgent: string | undefined;
    let headers: ReadonlyMap<string, string> | undefined;
    const refererAt = line.indexOf(" ", end + 6) + 2;
    if (refererAt !== 1 && line.charCodeAt(refererAt - 1) === QUOTE) {
      const refererEnd = quotedEnd(line, refererAt);
      const agentAt = refererEnd + 3;
      const hasAgent = line.charCodeAt(agentAt - 1) === QUOTE;
      if (hasAgent) {
        const referer = line.slice(refererAt, refererEnd);
        const agent = line.slice(agentAt, quotedEnd(line, agentAt));
        if (referer !== "-")
          headers = this.#referers.get(hasEscapes ? unescaped(referer) : referer);
        if (agent !== "-") userAgent = this.#userAgents.get(hasEscapes ? unescaped(agent) : agent);
      }
      // A line that is cut off inside the referer is in Combined Log Format too.
      if (hasAgent || refererEnd === line.length) this.#combined++;
    }
    this.#requests++;
    const { method, target } = this.#requestLine;
    return {
      at,
      method,
      target,
      host,
      ip,
      status: status === 0 ? undefined : status,
      userAgent,
      headers,
      responseHeaders: undefined,
      cf: undefined,
      bodyBytes: undefined,
      durationMs: undefined,
    };
  }

  #readRequest(
    line: string,
    from: number,
    to: number,
    hasEscapes: boolean,
  ): true | string | undefined {
    if (!hasEscapes) return this.#requestLine.read(line, from, to);
    const request = unescaped(line.slice(from, to));
    return this.#requestLine.read(request, 0, request.length);
  }

  facts(): LogFacts {
    const hasRequests = this.#requests > 0;
    return {
      ip: true,
      host: this.#host !== undefined || (hasRequests && this.#withHost === this.#requests),
      status: true,
      country: false,
      asn: false,
      bots: false,
      ja4: false,
      bodyBytes: false,
      headers: hasRequests && this.#combined === this.#requests ? COMBINED_HEADERS : NO_HEADERS,
      responseHeaders: NO_HEADERS,
    };
  }
}

/**
 * Reads a status of three digits with a length after it.
 *
 * @returns 0 for a request without a response; -1 if there is no status
 */
function statusAt(line: string, index: number): number {
  const hundreds = line.charCodeAt(index) - 48;
  const tens = line.charCodeAt(index + 1) - 48;
  const ones = line.charCodeAt(index + 2) - 48;
  if (line.charCodeAt(index + 3) !== SPACE) return -1;
  const isStatus = isDigit(hundreds) && isDigit(tens) && isDigit(ones);
  const length = line.charCodeAt(index + 4);
  if (!isStatus || (length !== DASH && !isDigit(length - 48))) return -1;
  return hundreds * 100 + tens * 10 + ones;
}

function isDigit(value: number): boolean {
  return value >= 0 && value <= 9;
}

/**
 * Returns the end of a quoted field. Some servers cut off long lines, so the field may end with the line: all
 * that rules need comes before it.
 */
function quotedEnd(line: string, from: number): number {
  const end = closingQuote(line, from);
  return end === -1 ? line.length : end;
}
