import { closingQuote, hasEscape, indexBefore, unescaped } from "./access-quotes.ts";
import { AccessTime } from "./access-time.ts";
import { clientIp, isIPv4At } from "./client-ip.ts";
import { hostName } from "./host-name.ts";
import type { LineContent, LineParser } from "./log-line.ts";
import type { LogFacts } from "./log-request.ts";
import { RefererAndAgent } from "./referer-and-agent.ts";
import { RequestLine } from "./request-line.ts";
import { ownText, TextCache } from "./text-cache.ts";

const NO_HEADERS: ReadonlySet<string> = new Set();
const COMBINED_HEADERS: ReadonlySet<string> = new Set(["user-agent", "referer"]);

const SPACE = 32;
const QUOTE = 34;
const DASH = 45;
const OPENING_BRACKET = 91;
const CLOSING_BRACKET = 93;

/** The length of the text ` - - [`. */
const USUAL_DISTANCE = 5;
/** The distance from the opening bracket to the closing one, in the usual format of times. */
const TIME_DISTANCE = 27;

/**
 * No shorter line has a time and a request. Searching for a character may go on behind the end of a line, so in a
 * text of many short lines, each search would read the whole text.
 */
const MIN_LENGTH = 40;

/**
 * Parses lines of Apache and nginx in Common or Combined Log Format, also with a virtual host before them, and
 * with other fields after them:
 *
 *     [HOST[:PORT] ]ADDRESS IDENTITY USER [TIME] "REQUEST" STATUS BYTES[ "REFERER" "USER AGENT"[ …]]
 *
 * A regular expression with a group for each field would take three times as long. So would copying each line:
 * lines are parsed as parts of a text with many lines.
 */
export class AccessLineParser implements LineParser {
  readonly #host: string | undefined;
  readonly #time = new AccessTime();
  readonly #requestLine = new RequestLine();
  readonly #ips = new TextCache((text) => clientIp(text) ?? null);
  readonly #hosts = new TextCache(hostName);
  readonly #lastFields = new RefererAndAgent();
  #requests = 0;
  #withHost = 0;
  #combined = 0;

  /** @param host the host of requests whose lines state none */
  constructor(host: string | undefined) {
    this.#host = host;
  }

  parse(text: string, from = 0, to = text.length): LineContent {
    if (to - from < MIN_LENGTH) return "is too short for an access log";
    const addressEnd = indexBefore(text, " ", from, to);
    if (addressEnd === -1) return "has no fields";
    const next = addressEnd + 1;
    // Usually, the second field is "-". If it is an address, the first field is a virtual host.
    if (text.charCodeAt(next) === DASH && text.charCodeAt(next + 1) === SPACE) {
      const ip = this.#ipAt(text, from, addressEnd);
      return ip === null ? NO_ADDRESS : this.#parseFromTime(text, addressEnd, to, ip, this.#host);
    }
    const secondEnd = indexBefore(text, " ", next, to);
    const second = secondEnd === -1 ? null : this.#ipAt(text, next, secondEnd);
    if (second === null) {
      const ip = this.#ipAt(text, from, addressEnd);
      return ip === null ? NO_ADDRESS : this.#parseFromTime(text, addressEnd, to, ip, this.#host);
    }
    const host = this.#hosts.get(text.slice(from, addressEnd));
    const content = this.#parseFromTime(text, secondEnd, to, second, host);
    if (typeof content === "object") this.#withHost++;
    return content;
  }

  /** Most addresses are IPv4 in its canonical notation. Finding these in a cache would take longer. */
  #ipAt(text: string, from: number, to: number): string | null {
    const part = text.slice(from, to);
    return isIPv4At(text, from, to) ? ownText(part) : this.#ips.get(part);
  }

  /** @param addressEnd the index after the address */
  #parseFromTime(
    text: string,
    addressEnd: number,
    to: number,
    ip: string,
    host: string | undefined,
  ): LineContent {
    let open = addressEnd + USUAL_DISTANCE;
    if (text.charCodeAt(open) !== OPENING_BRACKET) open = indexBefore(text, "[", addressEnd, to);
    const close = open + TIME_DISTANCE;
    if (open !== -1 && close < to && text.charCodeAt(close) === CLOSING_BRACKET) {
      const at = this.#time.read(text, open + 1, close);
      if (!Number.isNaN(at)) return this.#parseFromRequest(text, close + 2, to, at, ip, host);
    }
    return this.#parseUnusualTime(text.slice(addressEnd, to), ip, host);
  }

  /** Parses a line whose time has fractions, or whose user name has a bracket. */
  #parseUnusualTime(rest: string, ip: string, host: string | undefined): LineContent {
    const close = rest.indexOf('] "');
    const open = rest.lastIndexOf("[", close);
    if (close === -1 || open === -1) return "has no time in brackets with a request after it";
    const at = this.#time.read(rest, open + 1, close);
    if (Number.isNaN(at)) return "has no time such as [17/May/2015:10:05:03 +0000]";
    return this.#parseFromRequest(rest, close + 2, rest.length, at, ip, host);
  }

  /** @param open the index of the quote before the request */
  #parseFromRequest(
    text: string,
    open: number,
    to: number,
    at: number,
    ip: string,
    host: string | undefined,
  ): LineContent {
    const end = text.charCodeAt(open) === QUOTE ? closingQuote(text, open + 1, to) : -1;
    if (end === -1) return "has no request in quotes after the time";
    const content = this.#readRequest(text, open + 1, end);
    if (content !== true) return content;
    const status = statusAt(text, end + 2, to);
    if (status === -1) return "has no status and length after the request";
    if (this.#lastFields.read(text, end + STATUS_DISTANCE, to)) this.#combined++;
    this.#requests++;
    const { method, target } = this.#requestLine;
    return {
      at,
      method,
      target,
      host,
      ip,
      status: status === 0 ? undefined : status,
      userAgent: this.#lastFields.userAgent,
      headers: this.#lastFields.headers,
      responseHeaders: undefined,
      cf: undefined,
      bodyBytes: undefined,
      durationMs: undefined,
    };
  }

  #readRequest(text: string, from: number, to: number): true | string | undefined {
    if (!hasEscape(text, from, to)) return this.#requestLine.read(text, from, to);
    const request = unescaped(text.slice(from, to));
    return this.#requestLine.read(request, 0, request.length);
  }

  facts(): LogFacts {
    const hasRequests = this.#requests > 0;
    return {
      isMappable: false,
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

const NO_ADDRESS = "does not begin with an IP address, or with a host and an IP address";

/** The distance from the quote after the request to the length. */
const STATUS_DISTANCE = 6;

/**
 * Reads a status of three digits with a length after it.
 *
 * @returns 0 for a request without a response; -1 if there is no status
 */
function statusAt(text: string, index: number, to: number): number {
  if (index + 4 >= to || text.charCodeAt(index + 3) !== SPACE) return -1;
  const hundreds = text.charCodeAt(index) - 48;
  const tens = text.charCodeAt(index + 1) - 48;
  const ones = text.charCodeAt(index + 2) - 48;
  const length = text.charCodeAt(index + 4);
  const isStatus = isDigit(hundreds) && isDigit(tens) && isDigit(ones);
  if (!isStatus || (length !== DASH && !isDigit(length - 48))) return -1;
  return hundreds * 100 + tens * 10 + ones;
}

function isDigit(value: number): boolean {
  return value >= 0 && value <= 9;
}
