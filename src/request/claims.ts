import type { ClaimPart } from "../config/key-expression.ts";

/** The claims of a verified token, which are statements of its issuer. They can have any type. */
export type Claims = Readonly<Record<string, unknown>>;

/**
 * Returns a claim as a key's value. A claim is present only if it is a whole number or a text that
 * is not empty. A number that a double cannot hold exactly counts as absent. JSON.parse rounds such
 * a number, so two clients with different numbers could share a counter.
 */
export function readClaim(claims: Claims | undefined, part: ClaimPart): string | undefined {
  return textOf(findClaim(claims, part));
}

/**
 * Returns the elements of a claim that is a list, such as a list of roles. Omits each element that
 * would count as absent if it were the claim.
 *
 * @returns undefined if the claim is not a list
 */
export function readClaimList(
  claims: Claims | undefined,
  part: ClaimPart,
): readonly string[] | undefined {
  const claim = findClaim(claims, part);
  return Array.isArray(claim) ? claim.map(textOf).filter((text) => text !== undefined) : undefined;
}

function findClaim(claims: Claims | undefined, { name, pointer = [name] }: ClaimPart): unknown {
  let value: unknown = claims;
  for (const each of pointer) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, each)) {
      return undefined;
    }
    // A list has properties that are not elements, such as `length`.
    if (Array.isArray(value) && !/^\d+$/.test(each)) return undefined;
    value = (value as Claims)[each];
  }
  return value;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) ? String(value) : undefined;
  return typeof value === "string" && value !== "" ? value : undefined;
}
