/** Kinds of key that need no name. */
const PLAIN = ["ip", "host", "path", "method", "country", "asn", "ja4", "global"] as const;
/** Kinds of key that name what they read, as in `header:x-api-key`. */
const NAMED = ["header", "cookie", "query", "param", "jwt", "custom"] as const;

/**
 * One thing to count by. `name` is what a header, cookie, query or path parameter is called, a claim
 * of a token, or a function that `weir()` is given.
 */
export type KeyPart =
  | { readonly kind: (typeof PLAIN)[number] }
  | { readonly kind: (typeof NAMED)[number]; readonly name: string };

/**
 * Who is counted: all elements of the outer list together, and for each of them the first
 * alternative that the request carries.
 */
export type KeyExpression = readonly (readonly KeyPart[])[];

export const ALLOWED_KEYS = [
  ...PLAIN,
  ...NAMED.map((kind) => (kind === "jwt" ? "jwt:CLAIM" : `${kind}:NAME`)),
].join(", ");

/**
 * UTF-16 code units that the value of a key may have. A longer one is absent: no credential is as
 * long, and reading and hashing it would cost CPU.
 */
export const MAX_KEY_LENGTH = 8 * 1024;

/** RFC 9110's token, which names headers and cookies, less the `|` that divides alternatives. */
const TOKEN = /^[!#$%&'*+.^_`~0-9A-Za-z-]+$/;

/** @returns a header's name in lower case, or undefined when no header is called that */
export function parseHeaderName(text: string): string | undefined {
  return TOKEN.test(text) ? text.toLowerCase() : undefined;
}

/**
 * Reads one element of a key: `"ip"`, or alternatives as in `"header:x-api-key | ip"`.
 *
 * @returns the alternatives in order, or undefined when one of them is not a key
 */
export function parseAlternatives(text: string): KeyPart[] | undefined {
  const parts = text.split("|").map((part) => parsePart(part.trim()));
  return parts.every((part) => part !== undefined) ? parts : undefined;
}

function parsePart(text: string): KeyPart | undefined {
  const plain = PLAIN.find((kind) => kind === text);
  if (plain) return { kind: plain };
  const colon = text.indexOf(":");
  const kind = NAMED.find((named) => named === text.slice(0, colon));
  const name = text.slice(colon + 1);
  if (!kind || name === "") return undefined;
  switch (kind) {
    case "header": {
      const header = parseHeaderName(name);
      return header ? { kind, name: header } : undefined;
    }
    case "cookie":
      return TOKEN.test(name) ? { kind, name } : undefined;
    case "jwt":
      return /^[\w.-]+$/.test(name) ? { kind, name } : undefined;
    case "param":
    case "custom":
      return /^\w+$/.test(name) ? { kind, name } : undefined;
    case "query":
      return { kind, name };
    default:
      return kind satisfies never;
  }
}
