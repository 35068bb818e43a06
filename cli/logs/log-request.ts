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
