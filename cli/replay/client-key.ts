import { createHash } from "node:crypto";
import type { KeyExpression, KeyPart } from "../../src/config/key-expression.ts";
import { type NamedValue, type RequestContext, valueIn } from "../../src/request/identity.ts";

/** A value of a key, with the part of the key that it comes from. */
export interface KeyValue extends NamedValue {
  readonly part: KeyPart;
}

const ADDRESS: KeyPart = { kind: "ip" };
/** The value of the part `ip` for requests without a valid address. */
export const UNKNOWN_ADDRESS = "unknown";

/**
 * Returns the values of a key, as `identityOf` of src/request/identity.ts reads them. Tokens and functions
 * count as absent.
 */
export function keyValuesOf(key: KeyExpression, context: RequestContext): KeyValue[] {
  return key.map(
    (alternatives) =>
      firstValue(alternatives, context) ?? (firstValue([ADDRESS], context) as KeyValue),
  );
}

/** Returns the first alternative that a request has. */
export function firstValue(
  alternatives: readonly KeyPart[],
  context: RequestContext,
): KeyValue | undefined {
  for (const part of alternatives) {
    const present = valueIn(part, context);
    if (present) return { ...present, part };
  }
  return undefined;
}

/** The number of bytes of a hash that form an identity, as in src/request/hash.ts. */
const IDENTITY_BYTES = 16;

/** Returns the identity that a Worker without WEIR_KEY_SECRET has for the encoded values of a key. */
export function identityHash(encodedValues: string): string {
  const bytes = createHash("sha256").update(encodedValues).digest();
  return bytes.toString("base64url", 0, IDENTITY_BYTES);
}
