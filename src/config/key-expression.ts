/** Kinds of key that need no name. */
const PLAIN = ["ip", "host", "path", "method", "country", "asn", "ja4", "global"] as const;
/** Kinds of key that name what they read, as in `header:x-api-key`. */
const NAMED = ["header", "cookie", "query", "param"] as const;

/** One thing to count by. `name` is what a header, cookie, query or path parameter is called. */
export type KeyPart =
  | { readonly kind: (typeof PLAIN)[number] }
  | { readonly kind: (typeof NAMED)[number]; readonly name: string };

/**
 * Who is counted: all elements of the outer list together, and for each of them the first
 * alternative that the request carries.
 */
export type KeyExpression = readonly (readonly KeyPart[])[];

export const ALLOWED_KEYS = `${PLAIN.join(", ")}, ${NAMED.map((kind) => `${kind}:NAME`).join(", ")}`;

/** RFC 9110's token, which names headers and cookies, less the `|` that divides alternatives. */
const TOKEN = /^[!#$%&'*+.^_`~0-9A-Za-z-]+$/;

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
    case "header":
      return TOKEN.test(name) ? { kind, name: name.toLowerCase() } : undefined;
    case "cookie":
      return TOKEN.test(name) ? { kind, name } : undefined;
    case "param":
      return /^\w+$/.test(name) ? { kind, name } : undefined;
    case "query":
      return { kind, name };
    default:
      return kind satisfies never;
  }
}
