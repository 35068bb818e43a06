import * as v from "valibot";
import { faultText } from "./fault-text.ts";
import { isRecord, pathTo } from "./fields.ts";
import { partsOf } from "./rule-checks.ts";
import { type PlacedRule, placedRules } from "./rules.ts";

// Each of these checks compares a rule with a top-level field. The checks also run if the configuration
// has other faults, so that Weir reports all faults at once.

/** A value of a key in a rule, in the notation of the configuration, such as `jwt:sub`. */
export interface KeyUse {
  readonly kind: string;
  readonly name: string;
  readonly path: PlacedRule["path"];
}

/**
 * Checks that `jwt` is set if a key reads a claim, because Weir uses a claim only after it has
 * verified the token.
 */
export function checkClaims<Fields>() {
  return v.rawCheck<Fields>(({ dataset, addIssue }) => {
    const config: unknown = dataset.value;
    if (!isRecord(config) || config.jwt !== undefined) return;
    const message = faultText(
      'a key that reads a claim needs the top-level field jwt, such as jwt: { jwks: "https://…" }',
    );
    for (const { kind, name, path } of namedParts(config)) {
      if (kind === "jwt") addIssue({ path, input: name, message });
    }
  });
}

/**
 * Returns the named values in the keys and tiers of all rules that count HTTP requests. For other
 * rules, programs pass the keys.
 */
export function namedParts(config: Record<string, unknown>): KeyUse[] {
  return placedRules(config).flatMap(({ rule, path }) => {
    if (!isRecord(rule) || rule.for === "programs") return [];
    const { tiers } = rule;
    return [
      ...namesIn(rule.key, [...path, pathTo(rule, "key")]),
      ...(isRecord(tiers)
        ? namesIn(tiers.by, [...path, pathTo(rule, "tiers"), pathTo(tiers, "by")])
        : []),
    ];
  });
}

function namesIn(key: unknown, path: KeyUse["path"]): KeyUse[] {
  return partsOf(key).flatMap((part) =>
    "name" in part ? { kind: part.kind, name: part.name, path } : [],
  );
}
