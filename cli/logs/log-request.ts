import { parseAddress } from "../../src/config/address.ts";

/**
 * A request that a log records. A field is undefined if the log does not state it in this line. Each text has
 * memory of its own, so that keeping one does not keep the line that it is from.
 */
export interface LogRequest {
  /** When the request arrived, in milliseconds since the Unix epoch. */
  readonly at: number;
  /** As logged, such as `GET`. */
  readonly method: string;
  /** The path with its query, as logged. Begins with a slash. */
  readonly target: string;
  /** The host name, without a port. */
  readonly host: string | undefined;
  /** The client's address. */
  readonly ip: string | undefined;
  /** The status of the response that the client got. */
  readonly status: number | undefined;
  readonly userAgent: string | undefined;
  /** Other header fields of the request, by their names in lower case. */
  readonly headers: ReadonlyMap<string, string> | undefined;
  /** Header fields of the response, by their names in lower case. */
  readonly responseHeaders: ReadonlyMap<string, string> | undefined;
  /** Cloudflare's data about the client, in the form of `request.cf`. */
  readonly cf: LogClientFacts | undefined;
  /** The length of the request's body, in bytes. */
  readonly bodyBytes: number | undefined;
  /** Milliseconds from the request to the end of its response. */
  readonly durationMs: number | undefined;
}

/** The part of `request.cf` that logs can state. */
export interface LogClientFacts {
  readonly country?: string;
  readonly asn?: number;
  readonly botManagement?: { readonly ja4?: string; readonly verifiedBot?: boolean };
  readonly verifiedBotCategory?: string;
}

/**
 * What the lines of a log can state. A fact that is false or not listed is unknown in every line. A fact that
 * is true and missing in a line means that the request did not have it.
 */
export interface LogFacts {
  /** False if `--map` cannot name further facts, because not all files are JSON lines. */
  readonly isMappable?: false;
  readonly ip: boolean;
  readonly host: boolean;
  readonly status: boolean;
  readonly country: boolean;
  readonly asn: boolean;
  readonly bots: boolean;
  readonly ja4: boolean;
  readonly bodyBytes: boolean;
  /** The names of the request's header fields, in lower case; `"all"` for a log of all fields. */
  readonly headers: "all" | ReadonlySet<string>;
  /** The names of the response's header fields, in lower case; `"all"` for a log of all fields. */
  readonly responseHeaders: "all" | ReadonlySet<string>;
}

/** Labels, or an IPv6 address in brackets; then a port. */
const HOST = /^([\w.-]{1,253}|\[[\da-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * Returns a host name in lower case, without its port.
 *
 * @returns undefined if the text is no host name
 */
export function hostName(text: string): string | undefined {
  return HOST.exec(text)?.[1]?.toLowerCase();
}

/** The path of a request with its query, and the host of an absolute URL. */
interface RequestTarget {
  readonly target: string;
  readonly host: string | undefined;
}

const ORIGIN = /^https?:\/\/[^/?#]*/i;

/**
 * Reads a path or an absolute URL.
 *
 * @param query the query, if the URL does not have it; with or without its question mark
 * @returns undefined for anything else
 */
export function requestTarget(url: string, query?: string): RequestTarget | undefined {
  const origin = ORIGIN.exec(url)?.[0] ?? "";
  const rest = url.slice(origin.length).split("#", 1)[0] ?? "";
  if (origin === "" && !rest.startsWith("/")) return undefined;
  const path = rest.startsWith("/") ? rest : `/${rest}`;
  const isComplete = query === undefined || path.includes("?");
  const authority = origin.slice(origin.indexOf("//") + 2);
  return {
    target: isComplete ? path : `${path}?${query.startsWith("?") ? query.slice(1) : query}`,
    host: hostName(authority.slice(authority.lastIndexOf("@") + 1)),
  };
}

/** A method is a token (RFC 9110). Registered methods have at most 17 characters. */
const METHOD = /^[\w!#$%&'*+.^`|~-]{1,32}$/;

/** Whether a text can be the method of a request. */
export function isHttpMethod(text: string): boolean {
  return METHOD.test(text);
}

/** An IPv4 address with a port, or an IPv6 address in brackets, with or without a port. */
const WITH_PORT = /^(?:([\d.]{7,15}):\d{1,5}|\[([\da-f:.]{2,45})\](?::\d{1,5})?)$/i;

/** An IPv4 address that is embedded in an IPv6 address, as dual-stack servers log it. */
const MAPPED = /^::ffff:([\da-f]{1,4}):([\da-f]{1,4})$/;

/**
 * Returns the canonical notation of a client's address. Accepts a port after it. An IPv4 address that is mapped
 * into IPv6 is returned as IPv4.
 *
 * @returns undefined for anything else, such as a host name
 */
export function clientIp(text: string): string | undefined {
  const [, ipv4, ipv6] = WITH_PORT.exec(text) ?? [];
  const canonical = parseAddress(ipv4 ?? ipv6 ?? text)?.toString();
  if (canonical === undefined) return undefined;
  const [, high, low] = MAPPED.exec(canonical) ?? [];
  if (high === undefined || low === undefined) return canonical;
  const bits = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return bits.flatMap((pair) => [pair >> 8, pair & 0xff]).join(".");
}

/** Whether a part of a line is an IPv4 address in its canonical notation. */
export function isIPv4At(line: string, from: number, to: number): boolean {
  let dots = 0;
  let byte = -1;
  for (let index = from; index < to; index++) {
    const code = line.charCodeAt(index);
    if (code >= 48 && code <= 57) {
      // A leading zero would mean octal to some programs.
      if (byte === 0) return false;
      byte = (byte === -1 ? 0 : byte * 10) + code - 48;
      if (byte > 255) return false;
    } else if (code === 46 && byte !== -1) {
      dots++;
      byte = -1;
    } else return false;
  }
  return dots === 3 && byte !== -1;
}

/** A request that is further after one of those that follow it has a wrong time, in milliseconds. */
const JUMP_MS = 3_600_000;

/** How many requests are compared. */
const COMPARED = 16;

/**
 * Returns the time by which a request is compared with those of other files. This is the request's own time, except
 * if it is far after the requests that follow it in its file: a single line with a wrong time would otherwise keep
 * its file waiting until the end of all others.
 */
export function plausibleTime(requests: readonly LogRequest[], index: number): number {
  const { at } = requests[index] as LogRequest;
  let earliest = at;
  const end = Math.min(requests.length, index + COMPARED);
  for (let next = index + 1; next < end; next++) {
    earliest = Math.min(earliest, (requests[next] as LogRequest).at);
  }
  return at - earliest > JUMP_MS ? earliest : at;
}

type Names = LogFacts["headers"];

const NOTHING: LogFacts = {
  ip: false,
  host: false,
  status: false,
  country: false,
  asn: false,
  bots: false,
  ja4: false,
  bodyBytes: false,
  headers: new Set(),
  responseHeaders: new Set(),
};

/** Returns what each of several logs states. */
export function commonFacts(all: readonly LogFacts[]): LogFacts {
  return all.length === 0
    ? NOTHING
    : all.reduce((a, b) => ({
        ...((a.isMappable === false || b.isMappable === false) && { isMappable: false }),
        ip: a.ip && b.ip,
        host: a.host && b.host,
        status: a.status && b.status,
        country: a.country && b.country,
        asn: a.asn && b.asn,
        bots: a.bots && b.bots,
        ja4: a.ja4 && b.ja4,
        bodyBytes: a.bodyBytes && b.bodyBytes,
        headers: commonNames(a.headers, b.headers),
        responseHeaders: commonNames(a.responseHeaders, b.responseHeaders),
      }));
}

function commonNames(a: Names, b: Names): Names {
  if (a === "all") return b;
  if (b === "all") return a;
  return new Set([...a].filter((name) => b.has(name)));
}

/** A log that cannot be read. The message names the file, the reason, and what is allowed. */
export class LogError extends Error {
  override readonly name = "LogError";
}

/** The formats of logs. `combined` includes `common`, and lines with a host name before them. */
export const LOG_FORMATS = ["combined", "logpush", "json", "har"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** What a line is: a request, the reason why it cannot be read, or `undefined` if it is no request. */
export type LineContent = LogRequest | string | undefined;

/** Reads the lines of one file. */
export interface LineParser {
  /**
   * Parses a line, which is a part of a text with many lines.
   *
   * @param from the index of its first character; 0 if undefined
   * @param to the index of its end, without the line end; the text's end if undefined
   * @returns a request with memory of its own, so that it does not keep the text alive
   */
  parse(text: string, from?: number, to?: number): LineContent;
  /** What the lines that have been parsed so far state. */
  facts(): LogFacts;
}

/** The maximum length of a cached text, in characters. Longer texts would need much memory. */
const MAX_CACHED = 512;

/** V8 copies shorter parts. */
const MIN_PART = 13;

/**
 * Returns a text with memory of its own. A part of a text, such as a field of a line, keeps the whole text
 * alive in V8, so a single waiting request would keep 64 KiB.
 */
export function ownText(part: string): string {
  if (part.length < MIN_PART) return part;
  // Concatenating makes a new text, of which the result is a part. V8 has no other way to copy a text.
  return ` ${part}`.slice(1);
}

/** The number of places. Must be a power of two. */
const PLACES = 1024;

/**
 * Values that are computed from texts, for texts that repeat, such as user agents. Each text has one place,
 * where it replaces the text before it. A `Map` with several thousand texts would take three times as
 * long, and most of that for texts that do not repeat.
 */
export class TextCache<Value> {
  readonly #create: (text: string) => Value;
  readonly #texts = new Array<string | undefined>(PLACES).fill(undefined);
  readonly #values = new Array<Value | undefined>(PLACES).fill(undefined);

  constructor(create: (text: string) => Value) {
    this.#create = create;
  }

  get(part: string): Value {
    const place = placeOf(part);
    if (this.#texts[place] === part) return this.#values[place] as Value;
    const text = ownText(part);
    const value = this.#create(text);
    if (text.length > MAX_CACHED) return value;
    this.#texts[place] = text;
    this.#values[place] = value;
    return value;
  }
}

/** Returns a number below `PLACES` from the length and eight or nine characters of a text. */
function placeOf(text: string): number {
  const step = (text.length >> 3) | 1;
  let hash = text.length;
  for (let index = text.length - 1; index >= 0; index -= step) {
    hash = (Math.imul(hash, 31) + text.charCodeAt(index)) | 0;
  }
  return (hash ^ (hash >>> 10)) & (PLACES - 1);
}

/** How often the event loop gets a turn, in milliseconds, so that it can handle signals and draw the progress. */
const TURN_MS = 50;

/**
 * Passes on the values of an iteration until a signal is aborted, even while the next value does not come, as from
 * a standard input without an end.
 */
export async function* untilAborted<Value>(
  values: AsyncIterable<Value>,
  signal: AbortSignal,
): AsyncGenerator<Value, void, undefined> {
  const iterator = values[Symbol.asyncIterator]();
  let turnAt = performance.now();
  try {
    while (!signal.aborted) {
      const next = await beforeAbort(iterator.next(), { signal });
      if (next === undefined || next.done) return;
      yield next.value;
      if (performance.now() - turnAt < TURN_MS) continue;
      await new Promise((turn) => setImmediate(turn));
      turnAt = performance.now();
    }
  } finally {
    // A generator closes only after its next value, which may never come.
    const closed = iterator.return?.();
    if (signal.aborted) closed?.catch(() => {});
    else await closed;
  }
}

/**
 * Waits for a promise until a signal is aborted, or until a time has passed. `Promise.race` would keep one callback
 * for each promise.
 *
 * @returns undefined if the signal or the time comes first
 */
export function beforeAbort<Value>(
  promise: Promise<Value>,
  { signal, timeoutMs }: { signal?: AbortSignal | undefined; timeoutMs?: number | undefined },
): Promise<Value | undefined> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve(undefined);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
    const timer = timeoutMs === undefined ? undefined : setTimeout(stop, timeoutMs);
    promise.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
    });
  });
}
