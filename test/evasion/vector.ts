/** One way to try to get around a limit, and what must come of it. */
export interface Vector {
  /** What is tried. */
  readonly name: string;
  /**
   * The request's head, line by line, one character for each byte. Each line ends in CRLF on the
   * wire, and an empty one follows the last.
   */
  readonly lines: readonly string[];
  /** What follows the head. */
  readonly body?: string;
  /**
   * The rules of `rules.ts` that the request falls under, and who is counted by each: within a rule,
   * the same word is the same client, and another word another client. The rule `all` is left out,
   * since it counts every request that is counted at all. Undefined: no rule counts the request.
   */
  readonly counted?: Readonly<Record<string, string>>;
  /** The rule `all` does not count it, since it does not name OPTIONS. */
  readonly preflight?: true;
  /** The quotas of rules for which they are not the usual ones. */
  readonly quotas?: Readonly<Record<string, number>>;
  /** The response's status: 200, from the origin, unless it says otherwise. */
  readonly status?: number;
}

/** A class of vectors: what they have in common, and what comes of them all. */
export interface VectorClass {
  readonly about: string;
  readonly vectors: readonly Vector[];
}

/** Who sends requests, unless a vector is about just that. */
export const CLIENT = "203.0.113.7";

/** A request's head: `target` as it is, then the usual fields, then the given ones. */
export function head(target: string, ...fields: readonly string[]): string[] {
  return lines(`GET ${target} HTTP/1.1`, "Host: api.example.com", ...fields);
}

/** The same with another request line and other Host fields. */
export function lines(requestLine: string, ...fields: readonly string[]): string[] {
  return [requestLine, ...fields, `CF-Connecting-IP: ${CLIENT}`, "Connection: close"];
}

/** A text's UTF-8 bytes, one character for each. */
export function bytes(text: string): string {
  return Buffer.from(text, "utf8").toString("latin1");
}
