import type { ClaimPart, KeyExpression } from "../../src/config/key-expression.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { LocalFinding } from "../finding.ts";

/** Warns of claims whose names contain dots, because other programs write nested claims like that. */
export function claimWarnings({ name, key, tiers }: Rule, place: string): LocalFinding[] {
  return [
    ...dottedClaims(key).map((claim) => dottedClaim(claim, name, `${place}.key`)),
    ...dottedClaims(tiers?.by ?? []).map((claim) => dottedClaim(claim, name, `${place}.tiers.by`)),
  ];
}

function dottedClaims(key: KeyExpression): ClaimPart[] {
  return key
    .flat()
    .filter((part) => part.kind === "jwt")
    .filter(({ name, pointer }) => !pointer && /[^.]\.[^.]/.test(name));
}

function dottedClaim(claim: ClaimPart, rule: string, path: string): LocalFinding {
  const nested = claim.name.split(".").filter(Boolean).join("/");
  return {
    code: "dotted-claim",
    severity: "warning",
    path,
    message: `The key "jwt:${claim.name}" of the rule "${rule}" reads one claim whose name contains a dot, and no nested claim`,
    cure: `Write "jwt:/${nested}" for a nested claim, or "jwt:/${claim.name}" if the name contains the dot`,
  };
}
