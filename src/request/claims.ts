/** The claims of a verified token, which are statements of its issuer. They can have any type. */
export type Claims = Readonly<Record<string, unknown>>;

/**
 * Returns a claim as a key's value. A claim is present only if it is a whole number or a text that
 * is not empty. A number that a double cannot hold exactly counts as absent. JSON.parse rounds such
 * a number, so two clients with different numbers could share a counter.
 */
export function readClaim(claims: Claims | undefined, name: string): string | undefined {
  const value = claims && Object.hasOwn(claims, name) ? claims[name] : undefined;
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}
