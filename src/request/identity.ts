import { type KeyExpression, type KeyPart, MAX_KEY_LENGTH } from "../config/key-expression.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { type Claims, claimOf } from "./claims.ts";
import { clientAddress } from "./client-address.ts";
import { hasherFor } from "./hash.ts";
import { cookieNamed, headerNamed, queryNamed } from "./request-values.ts";

/** Where keys find what they read of a request itself. */
export interface RequestContext {
  readonly request: CanonicalRequest;
  /** The path by which a rule matched; undefined when several readings of it match. */
  readonly path: string | undefined;
  /** The parameters of that path, less those that differ between readings. */
  readonly params: Readonly<Record<string, string>>;
  /** Bits of an IPv6 address that tell clients apart. */
  readonly ipv6Prefix: number;
  /** Makes identities HMACs; without it they are plain hashes. */
  readonly keySecret?: string | undefined;
}

/** Where keys find what they read. */
export interface KeyContext extends RequestContext {
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

/** Who is counted, as a short text that shows nothing of them: see {@link hashOf}. */
export async function identityOf(key: KeyExpression, context: KeyContext): Promise<string> {
  const parts: Present[] = [];
  for (const alternatives of key) {
    // The client's address stands in where none of the alternatives is there.
    parts.push((await firstPresent(alternatives, context)) ?? addressOf(context));
  }
  return hashOf(parts, context.keySecret);
}

/**
 * The same identity, where it takes no work to speak of.
 *
 * @returns undefined where a part has to be waited for or decoded, which rules of one key share, or the
 * hash is not remembered
 */
export function identityNow(key: KeyExpression, context: RequestContext): string | undefined {
  const parts: Present[] = [];
  for (const alternatives of key) {
    let found: Present | undefined;
    for (const part of alternatives) {
      if (isLater(part) || part.kind === "cookie" || part.kind === "query") return undefined;
      found = presentIn(part, context);
      if (found) break;
    }
    parts.push(found ?? addressOf(context));
  }
  return hasherFor(context.keySecret).recall(textOf(parts));
}

/**
 * Makes an identity of what a key holds.
 *
 * Each part becomes what it is called and what it holds, both with their lengths in front, so that
 * no value can pass for two or for one of another kind; the hash of that bounds its length and keeps
 * addresses and API keys out of the store.
 *
 * @param secret makes the hash one that nobody else can compute
 * @returns 22 characters of base64url
 */
export function hashOf(parts: readonly Present[], secret?: string): Promise<string> {
  return hasherFor(secret).hash(textOf(parts));
}

function textOf(parts: readonly Present[]): string {
  let text = "";
  for (const { name, value } of parts) {
    text += `${name.length}:${name}${value.length}:${value}`;
  }
  return text;
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
    const found = isLater(part)
      ? presentAs(part, await readLater(part, context))
      : presentIn(part, context);
    if (found) return found;
  }
  return undefined;
}

/** How a rule writes a part of its key, such as `header:x-api-key`. */
export function nameOf(part: KeyPart): string {
  return "name" in part ? `${part.kind}:${part.name}` : part.kind;
}

/** A part that is not in the request itself, and has to be waited for. */
type LaterPart = KeyPart & { readonly kind: "jwt" | "custom" };

function isLater(part: KeyPart): part is LaterPart {
  return part.kind === "jwt" || part.kind === "custom";
}

function presentIn(part: KeyPart, context: RequestContext): Present | undefined {
  return part.kind === "ip" ? addressOf(context) : presentAs(part, read(part, context));
}

function presentAs(part: KeyPart, value: string | null | undefined): Present | undefined {
  if (!value || value.length > MAX_KEY_LENGTH) return undefined;
  return { name: nameOf(part), value };
}

function addressOf({ request, ipv6Prefix }: RequestContext): Present {
  return { name: "ip", value: clientAddress(request.headers, ipv6Prefix) };
}

/** What a part of a key holds in this request: undefined or empty when it is absent. */
function read(
  part: Exclude<KeyPart, { kind: "ip" }>,
  { request, path, params }: RequestContext,
): string | null | undefined {
  switch (part.kind) {
    case "header":
      return headerNamed(request.headers, part.name);
    case "cookie":
      return cookieNamed(request.headers, part.name);
    case "query":
      return queryNamed(request.search, part.name);
    case "param":
      return Object.hasOwn(params, part.name) ? params[part.name] : undefined;
    case "host":
      return request.host;
    case "path":
      return path;
    case "method":
      return request.method;
    case "country":
      return request.cf?.country;
    case "asn":
      return request.cf?.asn?.toString();
    case "ja4":
      return (request.cf?.botManagement as { ja4?: string } | undefined)?.ja4;
    case "global":
      return "global";
    case "jwt":
    case "custom":
      // See readLater.
      return undefined;
  }
}

async function readLater(
  part: LaterPart,
  { claims, custom }: KeyContext,
): Promise<string | null | undefined> {
  return part.kind === "jwt" ? claimOf(await claims(), part.name) : custom(part.name);
}
