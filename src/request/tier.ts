import type { KeyPart } from "../config/key-expression.ts";
import type { Rule, Window } from "../config/rule.ts";
import { readClaimList } from "./claims.ts";
import { type KeyContext, readPart } from "./identity.ts";

/**
 * Returns the quotas of the client's tier, or the rule's own quotas if it has no such tier. The
 * tier's name is the first alternative of `tiers.by` that the request has.
 */
export async function windowsFor(rule: Rule, context: KeyContext): Promise<readonly Window[]> {
  if (!rule.tiers) return rule.windows;
  const { by, windows } = rule.tiers;
  for (const part of by[0] ?? []) {
    const present = await readPart(part, context);
    if (present) return windows.get(present.value) ?? rule.windows;
    const names = await readNames(part, context);
    if (names.size === 0) continue;
    for (const [name, tier] of windows) if (names.has(name)) return tier;
    return rule.windows;
  }
  return rule.windows;
}

/** Returns the texts in the client's claim if the claim is a list; otherwise an empty set. */
async function readNames(part: KeyPart, context: KeyContext): Promise<ReadonlySet<string>> {
  if (part.kind !== "jwt") return new Set();
  return new Set(readClaimList(await context.readClaims(), part));
}
