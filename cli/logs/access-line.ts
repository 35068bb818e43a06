import { parseIsoTime } from "../../src/config/calendar.ts";
import { LruCache } from "../../src/request/lru-cache.ts";
import {
  clientIp,
  hostName,
  isHttpMethod,
  isIPv4At,
  type LineContent,
  type LineParser,
  type LogFacts,
  type LogRequest,
  ownText,
  requestTarget,
} from "./log-request.ts";

const SPACE = 32;
const QUOTE = 34;
const DASH = 45;
const SLASH = 47;
const OPENING_BRACKET = 91;
const BACKSLASH = 92;
const CLOSING_BRACKET = 93;

/** Returns the index of a character in a part of a text; -1 if it is not there. */
function indexBefore(text: string, character: string, from: number, to: number): number {
  const index = text.indexOf(character, from);
  return index < to ? index : -1;
}

/**
 * Returns the index of the quote that ends a quoted field. A quote inside the field has a backslash before it.
 * Servers that escape nothing exist too, so a quote counts only with a space or the line's end after it.
 *
 * @param from the index of the field's first character
 * @param to the end of the line
 * @returns -1 if the line ends inside the field
 */
function closingQuote(text: string, from: number, to: number): number {
  let quote = text.indexOf('"', from);
  while (quote !== -1 && quote < to) {
    const isEnd = quote + 1 === to || text.charCodeAt(quote + 1) === SPACE;
    if (isEnd && !isEscaped(text, quote, from)) return quote;
    quote = text.indexOf('"', quote + 1);
  }
  return -1;
}

/** Whether an odd number of backslashes is before a character. */
function isEscaped(text: string, index: number, from: number): boolean {
  let start = index;
  while (start > from && text.charCodeAt(start - 1) === BACKSLASH) start--;
  return (index - start) % 2 === 1;
}

/** Whether a part of a text has a backslash. A part of a text is rarely long enough to make `indexOf` faster. */
function hasEscape(text: string, from: number, to: number): boolean {
  for (let index = from; index < to; index++) {
    if (text.charCodeAt(index) === BACKSLASH) return true;
  }
  return false;
}

/** Apache's escapes, and the only one of nginx: `\xHH`. One match is a run, so that it may contain UTF-8. */
const ESCAPES = /(?:\\(?:x[\dA-Fa-f]{2}|["\\abfnrtv]))+/g;
const ESCAPE = /\\(?:x(..)|(.))/g;

const BYTES: Readonly<Record<string, number>> = {
  '"': 0x22,
  "\\": 0x5c,
  a: 7,
  b: 8,
  f: 12,
  n: 10,
  r: 13,
  t: 9,
  v: 11,
};

/** Returns the text of a quoted field without its escapes. */
function unescaped(field: string): string {
  return field.replace(ESCAPES, (run) => {
    const escapes = [...run.matchAll(ESCAPE)];
    const bytes = escapes.map(([, hex, letter]) =>
      hex === undefined ? (BYTES[letter ?? ""] ?? 0) : Number.parseInt(hex, 16),
    );
    return Buffer.from(bytes).toString();
  });
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** The length of `17/May/2015:10:05:03 +0000`. */
const USUAL_LENGTH = 26;
const DAY_LENGTH = 12;
const CLOCK_LENGTH = 8;

const DAY = /^(\d\d)\/([A-Z][a-z]{2})\/(\d{4})[: ]$/;
const ZONE = /^ ([+-])(0\d|1[0-4]):?([0-5]\d)$/;
const SLASHED = /^(.{12})(\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?( [+-]\d\d:?\d\d)$/;
const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;

/**
 * Reads the times of access logs. Remembers the last day and the last zone, because parsing dates would take
 * most of the time of a line.
 */
export class AccessTime {
  // No line has these texts. An empty text would be a part of every line.
  #day = "\n";
  #dayMs = Number.NaN;
  #zone = "\n";
  #zoneMs = Number.NaN;

  /**
   * Reads a time such as `17/May/2015:10:05:03 +0000`. Fractions of a second and ISO 8601 are accepted too.
   *
   * @param from the index of the time's first character
   * @param to the index after its last character
   * @returns milliseconds since the Unix epoch; NaN if there is no such time
   */
  read(line: string, from: number, to: number): number {
    if (to - from !== USUAL_LENGTH) return this.#readUnusual(line.slice(from, to));
    if (!line.startsWith(this.#day, from)) this.#readDay(line.slice(from, from + DAY_LENGTH));
    const zoneAt = from + DAY_LENGTH + CLOCK_LENGTH;
    if (!line.startsWith(this.#zone, zoneAt)) this.#readZone(line.slice(zoneAt, to));
    const clockMs = clockAt(line, from + DAY_LENGTH);
    const at = this.#dayMs + clockMs - this.#zoneMs;
    return Number.isNaN(at) ? this.#readUnusual(line.slice(from, to)) : at;
  }

  #readUnusual(text: string): number {
    if (ISO.test(text)) return parseIsoTime(text);
    const [, day = "", clock = "", fraction = "0", zone = ""] = SLASHED.exec(text) ?? [];
    const fractionMs = Math.floor(Number(`0.${fraction}`) * 1000);
    return dayStart(day) + clockAt(clock, 0) + fractionMs - zoneOffset(zone);
  }

  #readDay(text: string): void {
    this.#day = text;
    this.#dayMs = dayStart(text);
  }

  #readZone(text: string): void {
    this.#zone = text;
    this.#zoneMs = zoneOffset(text);
  }
}

/** Returns the start of a day in UTC, such as of `17/May/2015:`; NaN if there is no such day. */
function dayStart(text: string): number {
  const [, day = "", name = "", year = ""] = DAY.exec(text) ?? [];
  const month = MONTHS.indexOf(name);
  const start = Date.UTC(Number(year), month, Number(day));
  const date = new Date(start);
  // The years 0 to 99 would become 1900 to 1999.
  const isDay = date.getUTCDate() === Number(day) && date.getUTCFullYear() === Number(year);
  return month !== -1 && isDay ? start : Number.NaN;
}

/** Returns the offset of a zone such as ` +0530`, in milliseconds; NaN if the text is no zone. */
function zoneOffset(text: string): number {
  const [, sign, hours, minutes] = ZONE.exec(text) ?? [];
  const ms = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return sign === "-" ? -ms : ms;
}

/** Returns the milliseconds from midnight to a time such as `10:05:03`; NaN if there is no such time. */
export function clockAt(line: string, from: number): number {
  const hours = twoDigitsAt(line, from);
  const minutes = twoDigitsAt(line, from + 3);
  const seconds = twoDigitsAt(line, from + 6);
  const isClock = line.charCodeAt(from + 2) === 58 && line.charCodeAt(from + 5) === 58;
  // A leap second is 60, at the end of an hour in UTC. Zones differ from UTC by quarters of an hour.
  const maxSeconds = minutes % 15 === 14 ? 60 : 59;
  if (!isClock || hours > 23 || minutes > 59 || seconds > maxSeconds) return Number.NaN;
  return ((hours * 60 + minutes) * 60 + seconds) * 1000;
}

function twoDigitsAt(line: string, index: number): number {
  const tens = line.charCodeAt(index) - 48;
  const ones = line.charCodeAt(index + 1) - 48;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

/** Splits request lines such as `GET /search?q=1 HTTP/1.1`. */
export class RequestLine {
  /** The method of the last request. */
  method = "";
  /** The path of the last request, with its query. */
  target = "";

  /**
   * Reads a part of a text.
   *
   * @returns true for a request; undefined if it is no request with a path, such as `-` after a timeout; else
   * the reason why it cannot be read
   */
  read(text: string, from: number, to: number): true | string | undefined {
    const methodEnd = indexBefore(text, " ", from, to);
    if (methodEnd === -1) {
      const isEmpty = from === to || (to === from + 1 && text[from] === "-");
      return isEmpty ? undefined : "its request is not HTTP";
    }
    const isGet = text.startsWith("GET ", from);
    const method = isGet ? "GET" : ownText(text.slice(from, methodEnd));
    if (!isGet && !isHttpMethod(method)) return "its request is not HTTP";
    this.method = method;
    const targetEnd = indexBefore(text, " ", methodEnd + 1, to);
    // HTTP/0.9 has no version.
    if (targetEnd === -1) return this.#readTarget(text.slice(methodEnd + 1, to));
    if (!isVersion(text, targetEnd + 1, to)) {
      return "its request has more than a method, a path and a version";
    }
    return this.#readTarget(text.slice(methodEnd + 1, targetEnd));
  }

  #readTarget(target: string): true | string | undefined {
    if (target.charCodeAt(0) === SLASH) {
      this.target = ownText(target);
      return true;
    }
    if (target === "*" || this.method === "CONNECT") return undefined;
    const absolute = requestTarget(target);
    if (absolute === undefined) return "its request has no path";
    this.target = ownText(absolute.target);
    return true;
  }
}

/** The length of versions such as `HTTP/1.1`. */
const USUAL_VERSION = 8;

function isVersion(text: string, from: number, to: number): boolean {
  if (!text.startsWith("HTTP/", from)) return false;
  return to - from <= USUAL_VERSION || !text.slice(from, to).includes(" ");
}

/** A line that is being parsed. One object serves all lines, because a log has millions of them. */
class CurrentLine extends RequestLine {
  host: string | undefined;
  ip = "";
  at = 0;
  /** 0 for a request without a response. */
  status = 0;
  /** A text with many lines. */
  text = "";
  /** Where the length of the response begins, and where the line ends. */
  lengthAt = 0;
  to = 0;
}

/** The request of a line. Few rules read its last fields, so these are parsed only when they are needed. */
class AccessRequest implements LogRequest {
  readonly at: number;
  readonly method: string;
  readonly target: string;
  readonly host: string | undefined;
  readonly ip: string;
  readonly status: number | undefined;
  readonly #text: string;
  readonly #lengthAt: number;
  readonly #to: number;
  #last: LastFields | undefined;

  constructor(line: CurrentLine) {
    this.at = line.at;
    this.method = line.method;
    this.target = line.target;
    this.host = line.host;
    this.ip = line.ip;
    this.status = line.status === 0 ? undefined : line.status;
    this.#text = line.text;
    this.#lengthAt = line.lengthAt;
    this.#to = line.to;
  }

  get userAgent(): string | undefined {
    return this.#lastFields.userAgent;
  }

  get headers(): ReadonlyMap<string, string> | undefined {
    return this.#lastFields.headers;
  }

  get #lastFields(): LastFields {
    this.#last ??= lastFieldsOf(this.#text, this.#lengthAt, this.#to) ?? {};
    return this.#last;
  }
}

/** The headers that Combined Log Format adds to Common Log Format. */
interface LastFields {
  readonly headers?: ReadonlyMap<string, string> | undefined;
  readonly userAgent?: string | undefined;
}

/**
 * Reads the fields after the length of the response.
 *
 * @param from the index of a character of the length
 * @param to the end of the line
 * @returns undefined if the line is not in Combined Log Format
 */
function lastFieldsOf(text: string, from: number, to: number): LastFields | undefined {
  const refererAt = indexBefore(text, " ", from, to) + 2;
  if (refererAt === 1 || text.charCodeAt(refererAt - 1) !== QUOTE) return undefined;
  const refererEnd = quotedEnd(text, refererAt, to);
  const agentAt = refererEnd + 3;
  if (agentAt > to || text.charCodeAt(agentAt - 1) !== QUOTE) {
    // A line that is cut off inside the referer is in Combined Log Format too.
    return refererEnd === to ? {} : undefined;
  }
  const referer = quotedValue(text.slice(refererAt, refererEnd));
  return {
    headers: referer === undefined ? undefined : new Map([["referer", referer]]),
    userAgent: quotedValue(text.slice(agentAt, quotedEnd(text, agentAt, to))),
  };
}

/**
 * Returns the end of a quoted field. Some servers cut off long lines, so the field may end with the line: all
 * that rules need comes before it.
 */
function quotedEnd(text: string, from: number, to: number): number {
  const end = closingQuote(text, from, to);
  return end === -1 ? to : end;
}

/** Returns the value of a quoted field; undefined if the request did not have it. */
function quotedValue(field: string): string | undefined {
  if (field === "-") return undefined;
  return field.includes("\\") ? unescaped(field) : ownText(field);
}

const NO_HEADERS: ReadonlySet<string> = new Set();
const COMBINED_HEADERS: ReadonlySet<string> = new Set(["user-agent", "referer"]);

/** The length of the text ` - - [`. */
const USUAL_DISTANCE = 5;
/** The distance from the opening bracket to the closing one, in the usual format of times. */
const TIME_DISTANCE = 27;

/**
 * No shorter line has a time and a request. Searching for a character may go on behind the end of a line, so in a
 * text of many short lines, each search would read the whole text.
 */
const MIN_LENGTH = 40;

/** Only the first lines of a log decide which facts it states. Fewer lines are in the first 256 KiB. */
const DECIDING_LINES = 10_000;

/** The number of cached addresses that are not IPv4 in its canonical notation, and of cached hosts. */
const CACHED = 65_536;

/** An address or a host of a log; undefined for a text that is none. */
type Name = { readonly text: string | undefined };

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
  readonly #line = new CurrentLine();
  readonly #ips = new LruCache<Name>(CACHED);
  readonly #hosts = new LruCache<Name>(CACHED);
  #requests = 0;
  #withHost = 0;
  #combined = 0;

  /** @param host the host of requests whose lines state none */
  constructor(host: string | undefined) {
    this.#host = host;
  }

  parse(text: string, from = 0, to = text.length): LineContent {
    if (to - from < MIN_LENGTH) return "is too short for an access log";
    const line = this.#line;
    line.text = text;
    line.to = to;
    const addressEnd = this.#readClient(from);
    if (typeof addressEnd === "string") return addressEnd;
    const timeEnd = this.#readTime(addressEnd);
    if (typeof timeEnd === "string") return timeEnd;
    const open = timeEnd + 2;
    const end = text.charCodeAt(open) === QUOTE ? closingQuote(text, open + 1, to) : -1;
    if (end === -1) return "has no request in quotes after the time";
    const content = this.#readRequest(open + 1, end);
    if (content !== true) return content;
    line.status = statusAt(text, end + 2, to);
    if (line.status === -1) return "has no status and length after the request";
    line.lengthAt = end + STATUS_DISTANCE;
    if (this.#requests < DECIDING_LINES) this.#addFacts();
    return new AccessRequest(line);
  }

  /** @returns the index after the address, or why there is none */
  #readClient(from: number): number | string {
    const line = this.#line;
    const { text, to } = line;
    line.host = this.#host;
    const firstEnd = indexBefore(text, " ", from, to);
    if (firstEnd === -1) return "has no fields";
    const next = firstEnd + 1;
    // Usually, the second field is "-". If it is an address, the first field is a virtual host.
    if (text.charCodeAt(next) !== DASH || text.charCodeAt(next + 1) !== SPACE) {
      const secondEnd = indexBefore(text, " ", next, to);
      const second = secondEnd === -1 ? undefined : this.#ipAt(next, secondEnd);
      if (second !== undefined) {
        line.ip = second;
        line.host = cached(this.#hosts, text.slice(from, firstEnd), hostName);
        return secondEnd;
      }
    }
    const ip = this.#ipAt(from, firstEnd);
    if (ip === undefined) {
      return "does not begin with an IP address, or with a host and an IP address";
    }
    line.ip = ip;
    return firstEnd;
  }

  /** Most addresses are IPv4 in its canonical notation. Finding these in a cache would take longer. */
  #ipAt(from: number, to: number): string | undefined {
    const { text } = this.#line;
    const part = text.slice(from, to);
    return isIPv4At(text, from, to) ? ownText(part) : cached(this.#ips, part, clientIp);
  }

  /**
   * @param addressEnd the index after the address
   * @returns the index of the bracket after the time, or why there is none
   */
  #readTime(addressEnd: number): number | string {
    const line = this.#line;
    const { text, to } = line;
    let open = addressEnd + USUAL_DISTANCE;
    if (text.charCodeAt(open) !== OPENING_BRACKET) open = indexBefore(text, "[", addressEnd, to);
    let close = open + TIME_DISTANCE;
    if (open !== -1 && close < to && text.charCodeAt(close) === CLOSING_BRACKET) {
      line.at = this.#time.read(text, open + 1, close);
      if (!Number.isNaN(line.at)) return close;
    }
    // The time may have fractions, and the user name may have a bracket.
    const rest = text.slice(addressEnd, to);
    close = rest.indexOf('] "');
    open = rest.lastIndexOf("[", close);
    if (close === -1 || open === -1) return "has no time in brackets with a request after it";
    line.at = this.#time.read(rest, open + 1, close);
    if (Number.isNaN(line.at)) return "has no time such as [17/May/2015:10:05:03 +0000]";
    return addressEnd + close;
  }

  #readRequest(from: number, to: number): true | string | undefined {
    const { text } = this.#line;
    if (!hasEscape(text, from, to)) return this.#line.read(text, from, to);
    const request = unescaped(text.slice(from, to));
    return this.#line.read(request, 0, request.length);
  }

  #addFacts(): void {
    const { text, host, lengthAt, to } = this.#line;
    this.#requests++;
    if (host !== undefined) this.#withHost++;
    if (lastFieldsOf(text, lengthAt, to)) this.#combined++;
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

/** Returns what a function makes of a part of a text, for parts that repeat. */
function cached(
  cache: LruCache<Name>,
  part: string,
  read: (text: string) => string | undefined,
): string | undefined {
  const key = ownText(part);
  let name = cache.get(key);
  if (name === undefined) {
    name = { text: read(key) };
    if (key.length <= MAX_CACHED) cache.set(key, name);
  }
  return name.text;
}

/** The maximum length of a cached text, in characters. Longer texts would need much memory. */
const MAX_CACHED = 300;

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
