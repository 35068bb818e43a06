/** The claims of a token that has been verified: statements of its issuer, of any type. */
export type Claims = Readonly<Record<string, unknown>>;

/**
 * A claim's value as a key: a token's own, a text that is not empty or a whole number. A number that
 * a double cannot hold exactly is absent: JSON.parse rounds it, and two clients would be one.
 */
export function claimOf(claims: Claims | undefined, name: string): string | undefined {
  const value = claims && Object.hasOwn(claims, name) ? claims[name] : undefined;
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}
