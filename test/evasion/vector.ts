/** One attempt to get around a limit, and the required result. */
export interface Vector {
  /** A short description of the attempt. */
  readonly name: string;
  /**
   * The lines of the request's head, with one character for each byte. On the wire each line ends
   * in CRLF, and an empty line follows the last one.
   */
  readonly lines: readonly string[];
  /** The bytes after the head. */
  readonly body?: string;
  /**
   * The rules of `rules.ts` that match the request, each with a name for the counted client. Within a rule, one name
   * stands for one client. The rule `all` is left out, because it counts every such request. Undefined if not even
   * `all` counts the request.
   */
  readonly counted?: Readonly<Record<string, string>>;
  /**
   * True for a preflight. The rule `all` does not count it, because `all` does not name OPTIONS.
   */
  readonly preflight?: true;
  /** The limits of this client, by rule. Rules that are not listed have the usual limit. */
  readonly quotas?: Readonly<Record<string, number>>;
  /**
   * The status of the response, if workerd or Weir refuses the request.
   *
   * @default 200, because the request reaches the origin
   */
  readonly status?: number;
}

/** A class of vectors, and a description of the class. */
export interface VectorClass {
  readonly about: string;
  readonly vectors: readonly Vector[];
}

/** The address of the client in most vectors. */
export const CLIENT = "203.0.113.7";

/** Returns the head of a GET request for this target, with the usual fields and these fields. */
export function head(target: string, ...fields: readonly string[]): string[] {
  return lines(`GET ${target} HTTP/1.1`, "Host: api.example.com", ...fields);
}

/** Returns a head with this request line, these fields, and the usual fields except Host. */
export function lines(requestLine: string, ...fields: readonly string[]): string[] {
  return [requestLine, ...fields, `CF-Connecting-IP: ${CLIENT}`, "Connection: close"];
}

/** Returns the UTF-8 bytes of a text, with one character for each byte. */
export function bytes(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
