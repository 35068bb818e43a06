/**
 * Matches a key that reads a claim, such as `jwt.plan` or `claims:#/plan`. The `#` is from the
 * notation of JSON Pointers in URLs.
 */
const CLAIM = /^(?:jwt|claims?|token)\s*[:.]\s*#?(\S{1,256})$/i;

/**
 * Returns the key of a nested or URL-named claim that is written in another notation, such as
 * `jwt:/app_metadata/plan` for `jwt:app_metadata[plan]`.
 *
 * @returns undefined if the text does not name such a claim
 */
export function claimKey(text: string): string | undefined {
  const [, claim] = CLAIM.exec(text) ?? [];
  if (!claim) return undefined;
  if (claim.includes(":/")) return `jwt:/${escaped(claim.replace(/^\/|\/$/g, ""))}`;
  if (claim.startsWith("/")) {
    return `jwt:${claim.replace(/~(?![01])/g, "~0").replace(/(?<!\/)\/$/, "")}`;
  }
  const names = claim.replace(/^\$\.?/, "").match(/[^./[\]"']+/g) ?? [];
  return names.length > 1 ? `jwt:/${names.map(escaped).join("/")}` : undefined;
}

/** Escapes a name as RFC 6901 demands. */
function escaped(name: string): string {
  return name.replace(/~(?![01])/g, "~0").replaceAll("/", "~1");
}
