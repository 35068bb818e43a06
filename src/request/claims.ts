/** The claims of a verified token: statements of its issuer, of any type. */
export type Claims = Readonly<Record<string, unknown>>;

/**
 * Reads a claim as a key's value. Only whole numbers and texts that are not empty are present. A number
 * that a double cannot hold exactly is absent: JSON.parse rounds it, so two clients would become one.
 */
export function readClaim(claims: Claims | undefined, name: string): string | undefined {
  const value = claims && Object.hasOwn(claims, name) ? claims[name] : undefined;
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}
