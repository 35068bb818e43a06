/** One attempt to get around a limit, and the required result. */
export interface Vector {
  /** The attempt, in words. */
  readonly name: string;
  /**
   * The lines of the request's head, with one character for each byte. On the wire each line ends
   * in CRLF, and an empty line follows the last one.
   */
  readonly lines: readonly string[];
  /** The bytes after the head. */
  readonly body?: string;
  /**
   * The rules of `rules.ts` that match the request, each with a word for the client that it counts.
   * Within a rule, the same word is the same client. The rule `all` is left out, because it counts
   * all these requests. Undefined: no rule counts the request.
   */
  readonly counted?: Readonly<Record<string, string>>;
  /** Set for a preflight, which the rule `all` does not count because it does not name OPTIONS. */
  readonly preflight?: true;
  /** The limits of rules for this client, where they differ from the usual limit. */
  readonly quotas?: Readonly<Record<string, number>>;
  /**
   * The status of the response if the request does not reach the origin.
   *
   * @default 200, from the origin
   */
  readonly status?: number;
}

/** A class of vectors, and what they have in common. */
export interface VectorClass {
  readonly about: string;
  readonly vectors: readonly Vector[];
}

/** The usual address of the client. */
export const CLIENT = "203.0.113.7";

/** A request's head: GET with this target, the usual fields, and these fields. */
export function head(target: string, ...fields: readonly string[]): string[] {
  return lines(`GET ${target} HTTP/1.1`, "Host: api.example.com", ...fields);
}

/** A request's head: this request line, these fields, and the usual fields except Host. */
export function lines(requestLine: string, ...fields: readonly string[]): string[] {
  return [requestLine, ...fields, `CF-Connecting-IP: ${CLIENT}`, "Connection: close"];
}

/** The UTF-8 bytes of a text, one character for each byte. */
export function bytes(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
