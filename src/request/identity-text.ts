/** Exactly the form of identities. */
export const IDENTITY_PATTERN = /^[A-Za-z0-9_-]{22}$/;

/** What is allowed, for messages. */
export const IDENTITY_FORM = "an identity: 22 characters of A-Z, a-z, 0-9, - and _";

/** Whether a value has the form of a client's identity, so that no address and no key is stored instead. */
export function isIdentity(value: unknown): value is string {
  return typeof value === "string" && IDENTITY_PATTERN.test(value);
}
