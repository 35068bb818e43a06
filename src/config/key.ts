import * as v from "valibot";
import { faultText } from "./faults.ts";
import { isRecord, type LiteralUnion, placeIn } from "./fields.ts";

/** The maximum length of a pointer in UTF-16 code units, and the maximum number of names in a pointer. */
const MAX_LENGTH = 256;
const MAX_NAMES = 8;

/**
 * Matches a JSON Pointer (RFC 6901) to a claim. `~0` stands for `~`, and `~1` for `/`. A name cannot be empty,
 * because `/https://example.com/plan` without escapes would be four names. A name cannot contain separators, quotes
 * or brackets, because such a text is usually a list of keys, or a path in another notation.
 */
const POINTER = /^(?:\/(?:[^~/\s|,;&+"'`()<>[\]{}\\\p{Cc}]|~[01])+)+$/u;

/**
 * Parses a pointer to a claim, such as `/app_metadata/plan`.
 *
 * @returns the names of the properties that lead to the claim; undefined if the text is not a pointer
 */
function parseClaimPointer(text: string): readonly string[] | undefined {
  if (text.length > MAX_LENGTH || !POINTER.test(text)) return undefined;
  const names = text.slice(1).split("/");
  // RFC 6901 requires this order: `~01` stands for `~1`.
  return names.length > MAX_NAMES
    ? undefined
    : names.map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** Kinds of key that have no name. */
const UNNAMED = ["ip", "host", "path", "method", "country", "asn", "ja4", "global"] as const;
/** Kinds of key that need the name of the value that they read, as in `header:x-api-key`. */
export const NAMED = ["header", "cookie", "query", "param", "jwt", "custom"] as const;

/**
 * One value that distinguishes clients, or alternatives (`"a | b"`). The comment of `RuleInput.key` lists all values.
 *
 * @example "header:x-api-key | ip"
 */
export type KeyInput = LiteralUnion<
  | (typeof UNNAMED)[number]
  | "header:x-api-key"
  | "header:x-api-key | ip"
  | "cookie:session"
  | "query:api_key"
  | "param:id"
  | "jwt:sub"
  | "jwt:/app_metadata/tenant"
  | "custom:tenant"
>;

/** A claim of a verified token. */
export interface ClaimPart {
  readonly kind: "jwt";
  /** The name of the claim, or a JSON Pointer to it, such as `/app_metadata/plan`. */
  readonly name: string;
  /** The names of the properties that lead to the claim; undefined if `name` is not a pointer. */
  readonly pointer?: readonly string[];
}

/**
 * One value of a request that can identify a client. `name` is the name of a header, a cookie, a
 * query parameter, a path parameter, or a function in `custom.keys`.
 */
export type KeyPart =
  | { readonly kind: (typeof UNNAMED)[number] }
  | { readonly kind: Exclude<(typeof NAMED)[number], "jwt">; readonly name: string }
  | ClaimPart;

/**
 * A parsed key. All elements of the outer list together identify a client. Each element is a list of alternatives, of
 * which Weir uses the first one in the request.
 */
export type KeyExpression = readonly (readonly KeyPart[])[];

export const ALLOWED_KEYS = faultText(() =>
  [...UNNAMED, ...NAMED.map((kind) => (kind === "jwt" ? "jwt:CLAIM" : `${kind}:NAME`))].join(", "),
);

/**
 * The maximum length of a key's value, in UTF-16 code units. A longer value counts as absent,
 * because no credential is that long, and reading and hashing it would cost CPU time.
 */
export const MAX_KEY_LENGTH = 8 * 1024;

/**
 * The name of a header or cookie: a token of RFC 9110 without `|`, which separates alternatives.
 */
const TOKEN = /^[!#$%&'*+.^_`~0-9A-Za-z-]+$/;

/** @returns the name of a header in lower case; undefined if no header can have this name */
export function parseHeaderName(text: string): string | undefined {
  return TOKEN.test(text) ? text.toLowerCase() : undefined;
}

/**
 * Parses one element of a key: `"ip"`, or alternatives such as `"header:x-api-key | ip"`.
 *
 * @returns the alternatives in order; undefined if one of them is not a key
 */
export function parseAlternatives(text: string): KeyPart[] | undefined {
  const parts = text.split("|").map((part) => parsePart(part.trim()));
  return parts.every((part) => part !== undefined) ? parts : undefined;
}

/** Returns the parts of a key. Without a fault, the key is already parsed. With a fault, it is a text or a list. */
export function partsOf(key: unknown): KeyPart[] {
  return [key].flat(2).flatMap((part) => {
    if (typeof part === "string") return parseAlternatives(part) ?? [];
    return isRecord(part) && typeof part.kind === "string" ? (part as unknown as KeyPart) : [];
  });
}

function parsePart(text: string): KeyPart | undefined {
  const unnamed = UNNAMED.find((kind) => kind === text);
  if (unnamed) return { kind: unnamed };
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
    case "jwt": {
      if (/^[\w.-]+$/.test(name)) return { kind, name };
      const pointer = parseClaimPointer(name);
      return pointer && { kind, name, pointer };
    }
    case "param":
    case "custom":
      return /^\w+$/.test(name) ? { kind, name } : undefined;
    case "query":
      return { kind, name };
    default:
      return kind satisfies never;
  }
}

const KEY = faultText(
  () => `${ALLOWED_KEYS}; "a | b" for the first one present; a list for all of them together`,
);

/** The schema of a rule's `key`. */
export const KeySchema = v.pipe(
  v.custom<string | string[]>(isKeyShape, KEY),
  v.rawTransform<string | string[], KeyExpression>(({ dataset, addIssue, NEVER }) => {
    const { value } = dataset;
    const elements = [value].flat().map(parseAlternatives);
    if (elements.length > 0 && elements.every((element) => element !== undefined)) return elements;
    for (const [index, element] of elements.entries()) {
      if (element !== undefined) continue;
      if (typeof value === "string") addIssue({ message: KEY });
      else addIssue({ ...placeIn(value, [index]), message: KEY });
    }
    if (elements.length === 0) addIssue({ message: KEY });
    return NEVER;
  }),
);

function isKeyShape(value: unknown): boolean {
  return [value].flat().every((element) => typeof element === "string");
}
