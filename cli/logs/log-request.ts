import { parseAddress } from "../../src/config/address.ts";

/**
 * A request that a log records. A field is undefined if the log does not state it in this line. Each text is a copy,
 * so that keeping a text does not keep its whole line in memory.
 */
export interface LogRequest {
  /** When the request arrived, in milliseconds since the Unix epoch. */
  readonly at: number;
  /** How long the request was open. Only read if a rule needs it. */
  readonly durationMs?: number | undefined;
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
  /** Header fields of the request, by their names in lower case. */
  readonly headers: ReadonlyMap<string, string> | undefined;
  /** Header fields of the response, by their names in lower case. */
  readonly responseHeaders?: ReadonlyMap<string, string> | undefined;
  /** Cloudflare's data about the client, in the form of `request.cf`. */
  readonly cf?: LogClientFacts | undefined;
}

/** Whether a request got a response with a status below 400. An unknown status does not count. */
export function hasSucceeded({ status }: LogRequest): boolean {
  return status !== undefined && status >= 100 && status < 400;
}

/** The part of `request.cf` that logs can state. */
export interface LogClientFacts {
  readonly country?: string;
  readonly asn?: number;
  readonly botManagement?: { readonly ja4?: string; readonly verifiedBot?: boolean };
  readonly verifiedBotCategory?: string;
}

/**
 * The facts that the lines of a log can state, by the names of `--map`: `ip`, `host`, `status`, `duration`, `country`,
 * `asn`, `ja4`, `bot`, `header:NAME`, `response-header:NAME`. A fact that is not listed is unknown in every line. If a line
 * lacks a listed fact, the request did not have the fact.
 */
export type LogFacts = ReadonlySet<string>;

/** A host name or an IPv6 address in brackets, with or without a port. */
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
export interface RequestTarget {
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
  const isPlain = url.startsWith("/") && query === undefined && !url.includes("#");
  if (isPlain) return { target: url, host: undefined };
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

/**
 * The formats of logs. `combined` includes `common`, and lines with a host name before them. `json` includes
 * Cloudflare Logpush.
 */
export const LOG_FORMATS = ["combined", "json"] as const;
export type LogFormat = (typeof LOG_FORMATS)[number];

/** The content of a line: a request, the reason why it cannot be read, or undefined for a line without a request. */
export type LineContent = LogRequest | string | undefined;

/** Reads the lines of one file. */
export interface LineParser {
  /** Parses a line, without its line end. */
  parse(line: string): LineContent;
  /** A command for a shell that sorts the lines by their times. */
  readonly sortCommand: string;
  /** Returns the facts that every request states that was parsed so far. */
  facts(): LogFacts;
}

/** From this length on, a part of a text is a reference to the text in V8, not a copy. */
const MIN_PART = 13;

/**
 * Returns a text with memory of its own. A part of a text, such as a field of a line, keeps the whole text
 * alive in V8, so a single waiting request would keep 64 KiB.
 */
export function ownText(part: string): string {
  if (part.length < MIN_PART) return part;
  // Concatenating forces V8 to copy the part. The result then refers to the copy, not to the whole text.
  return ` ${part}`.slice(1);
}
