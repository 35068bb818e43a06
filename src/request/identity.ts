import { type KeyExpression, type KeyPart, MAX_KEY_LENGTH } from "../config/key-expression.ts";
import type { CanonicalRequest } from "./canonical-request.ts";
import { type Claims, readClaim } from "./claims.ts";
import { clientAddress } from "./client-address.ts";
import { hasherFor } from "./hash.ts";
import { cookieNamed, headerNamed, queryNamed } from "./request-values.ts";

/** The parts of a request that keys read without waiting. */
export interface RequestContext {
  readonly request: CanonicalRequest;
  /** The path by which a rule matched; undefined when several variants of it match. */
  readonly path: string | undefined;
  /** The parameters of that path, without those that differ between variants. */
  readonly params: Readonly<Record<string, string>>;
  /** Leading bits of an IPv6 address that distinguish clients. */
  readonly ipv6Prefix: number;
  /** The secret for HMACs. Without it, identities are plain hashes. */
  readonly keySecret?: string | undefined;
}

/** Everything that keys read. */
export interface KeyContext extends RequestContext {
  /** @returns the claims of the request's token; undefined without a valid token */
  readonly readClaims: () => Promise<Claims | undefined>;
  /** Calls the function for `custom:NAME`. */
  readonly computeCustom: (name: string) => Promise<string | null | undefined>;
}

/** The name of a part of a key, such as `header:x-api-key`, and the part's value in a request. */
export interface NamedValue {
  readonly name: string;
  readonly value: string;
}

/** The client's identity by a key: a short text that reveals nothing of the client. See {@link hashValues}. */
export async function identityOf(key: KeyExpression, context: KeyContext): Promise<string> {
  const values: NamedValue[] = [];
  for (const alternatives of key) {
    // If all alternatives are absent, the client's address is counted.
    values.push((await firstPresent(alternatives, context)) ?? addressIn(context));
  }
  return hashValues(values, context.keySecret);
}

/**
 * The same identity, if no work is needed for it.
 *
 * @returns undefined if the hash is not cached, or if a part must be waited for or decoded. Rules with
 * the same key share that work
 */
export function cachedIdentityOf(key: KeyExpression, context: RequestContext): string | undefined {
  const values: NamedValue[] = [];
  for (const alternatives of key) {
    let present: NamedValue | undefined;
    for (const part of alternatives) {
      if (isAsync(part) || part.kind === "cookie" || part.kind === "query") return undefined;
      present = valueIn(part, context);
      if (present) break;
    }
    values.push(present ?? addressIn(context));
  }
  return hasherFor(context.keySecret).cachedHash(encodeValues(values));
}

/**
 * Makes an identity from the values of a key.
 *
 * Names and values are written with their lengths in front, so that no value is mistaken for two values
 * or for a value of another name. The hash bounds the length, and keeps addresses and API keys out of
 * the store.
 *
 * @param secret turns the hash into an HMAC, which nobody else can compute
 * @returns 22 characters of base64url
 */
export function hashValues(values: readonly NamedValue[], secret?: string): Promise<string> {
  return hasherFor(secret).hash(encodeValues(values));
}

function encodeValues(values: readonly NamedValue[]): string {
  let text = "";
  for (const { name, value } of values) {
    text += `${name.length}:${name}${value.length}:${value}`;
  }
  return text;
}

/**
 * The value of the first alternative that is present, for keys of a single element.
 *
 * @returns undefined if none is present; unlike an identity, it does not fall back to the address
 */
export async function readKeyValue(
  [alternatives = []]: KeyExpression,
  context: KeyContext,
): Promise<string | undefined> {
  return (await firstPresent(alternatives, context))?.value;
}

async function firstPresent(
  alternatives: readonly KeyPart[],
  context: KeyContext,
): Promise<NamedValue | undefined> {
  for (const part of alternatives) {
    const present = isAsync(part)
      ? namedValue(part, await readAsync(part, context))
      : valueIn(part, context);
    if (present) return present;
  }
  return undefined;
}

/** A part's name as a rule writes it, such as `header:x-api-key`. */
export function keyPartName(part: KeyPart): string {
  return "name" in part ? `${part.kind}:${part.name}` : part.kind;
}

/** A part that is not in the request itself, and has to be waited for. */
type AsyncKeyPart = KeyPart & { readonly kind: "jwt" | "custom" };

function isAsync(part: KeyPart): part is AsyncKeyPart {
  return part.kind === "jwt" || part.kind === "custom";
}

function valueIn(part: KeyPart, context: RequestContext): NamedValue | undefined {
  return part.kind === "ip" ? addressIn(context) : namedValue(part, readValue(part, context));
}

/** @returns undefined for an empty or too long value, which is absent */
function namedValue(part: KeyPart, value: string | null | undefined): NamedValue | undefined {
  if (!value || value.length > MAX_KEY_LENGTH) return undefined;
  return { name: keyPartName(part), value };
}

function addressIn({ request, ipv6Prefix }: RequestContext): NamedValue {
  return { name: "ip", value: clientAddress(request.headers, ipv6Prefix) };
}

/** @returns a part's value in this request; undefined or empty if it is absent */
function readValue(
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
      // readAsync reads these.
      return undefined;
  }
}

async function readAsync(
  part: AsyncKeyPart,
  { readClaims, computeCustom }: KeyContext,
): Promise<string | null | undefined> {
  if (part.kind === "custom") return computeCustom(part.name);
  return readClaim(await readClaims(), part.name);
}
