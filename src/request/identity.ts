import type { KeyExpression, KeyPart } from "../config/key-expression.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { cookieNamed, headerNamed, queryNamed } from "./carried.ts";
import { clientAddress } from "./client-address.ts";
import { Recent } from "./recent.ts";
import { type Claims, claimOf } from "./token.ts";

/** Where keys find what they read. */
export interface KeyContext {
  readonly request: CanonicalRequest;
  /** The reading of the path by which a rule matched. */
  readonly path: string;
  /** The parameters of that path. */
  readonly params: Readonly<Record<string, string>>;
  /** Bits of an IPv6 address that tell clients apart. */
  readonly ipv6Prefix: number;
  /** The claims of the request's token, if it could be verified. */
  readonly claims: () => Promise<Claims | undefined>;
  /** What the function behind `custom:NAME` says. */
  readonly custom: (name: string) => Promise<string | null | undefined>;
}

/** What a part of a key is called, such as `header:x-api-key`, and what it holds. */
export interface Present {
  readonly name: string;
  readonly value: string;
}

/** Bytes of SHA-256 that are kept: 128 bits, at which two clients meet by chance never. */
const IDENTITY_BYTES = 16;

/** Hashes that are remembered, and of which texts: hashing costs more than all else about a key. */
const hashes = new Recent<string>(2048);
const LONGEST_REMEMBERED = 128;
const encoder = new TextEncoder();

/** Who is counted, as a short text that shows nothing of them: see {@link hashOf}. */
export async function identityOf(key: KeyExpression, context: KeyContext): Promise<string> {
  const parts: Present[] = [];
  for (const alternatives of key) {
    // The client's address stands in where none of the alternatives is there.
    parts.push((await firstPresent(alternatives, context)) ?? addressOf(context));
  }
  return hashOf(parts);
}

/**
 * Makes an identity of what a key holds.
 *
 * Each part becomes what it is called and what it holds, both with their lengths in front, so that
 * no value can pass for two or for one of another kind; SHA-256 of that bounds its length and keeps
 * addresses and API keys out of the store.
 *
 * @returns 22 characters of base64url
 */
export async function hashOf(parts: readonly Present[]): Promise<string> {
  const text = parts
    .map(({ name, value }) => `${name.length}:${name}${value.length}:${value}`)
    .join("");
  const known = hashes.get(text);
  if (known !== undefined) return known;
  const digest = await crypto.subtle.digest("SHA-256", encoder.encode(text));
  const hash = base64url(new Uint8Array(digest, 0, IDENTITY_BYTES));
  if (text.length <= LONGEST_REMEMBERED) hashes.set(text, hash);
  return hash;
}

/**
 * What the first alternative that is present holds, for keys of a single element.
 *
 * @returns undefined when none is: unlike in an identity, no address stands in
 */
export async function keyValue(
  [alternatives = []]: KeyExpression,
  context: KeyContext,
): Promise<string | undefined> {
  return (await firstPresent(alternatives, context))?.value;
}

async function firstPresent(
  alternatives: readonly KeyPart[],
  context: KeyContext,
): Promise<Present | undefined> {
  for (const part of alternatives) {
    if (part.kind === "ip") return addressOf(context);
    const value = await read(part, context);
    if (value) return { name: "name" in part ? `${part.kind}:${part.name}` : part.kind, value };
  }
  return undefined;
}

function addressOf({ request, ipv6Prefix }: KeyContext): Present {
  return { name: "ip", value: clientAddress(request.headers, ipv6Prefix) };
}

/** What a part of a key holds in this request: undefined or empty when it is absent. */
async function read(
  part: Exclude<KeyPart, { kind: "ip" }>,
  { request, path, params, claims, custom }: KeyContext,
): Promise<string | null | undefined> {
  const { cf } = request;
  switch (part.kind) {
    case "header":
      return headerNamed(request.headers, part.name);
    case "cookie":
      return cookieNamed(request.headers, part.name);
    case "query":
      return queryNamed(request.query, part.name);
    case "param":
      return Object.hasOwn(params, part.name) ? params[part.name] : undefined;
    case "host":
      return request.host;
    case "path":
      return path;
    case "method":
      return request.method;
    case "country":
      return cf?.country;
    case "asn":
      return cf?.asn?.toString();
    case "ja4":
      return (cf?.botManagement as { ja4?: string } | undefined)?.ja4;
    case "global":
      return "global";
    case "jwt":
      return claimOf(await claims(), part.name);
    case "custom":
      return custom(part.name);
  }
}

function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
}
