import * as v from "valibot";
import { listOfNames, shortened } from "./faults.ts";
import { isRecord, pathTo, pathToItem } from "./fields.ts";
import { partsOf } from "./rule-checks.ts";

// Each of these checks compares a rule with a top-level field. The checks also run if the configuration
// has other faults, so that Weir reports all faults at once.

/** A value of a key in a rule, in the notation of the configuration, such as `jwt:sub`. */
interface KeyUse {
  readonly kind: string;
  readonly name: string;
  readonly path: [v.ObjectPathItem, ...v.IssuePathItem[]];
}

/**
 * Checks that `jwt` is set if a key reads a claim, because Weir uses a claim only after it has
 * verified the token.
 */
export function checkClaims<Fields>() {
  return v.rawCheck<Fields>(({ dataset, addIssue }) => {
    const config: unknown = dataset.value;
    if (!isRecord(config) || config.jwt !== undefined) return;
    const message =
      'a key that reads a claim needs the top-level field jwt, such as jwt: { jwks: "https://…" }';
    for (const { kind, name, path } of namedParts(config)) {
      if (kind === "jwt") addIssue({ path, input: name, message });
    }
  });
}

/** Checks that `custom.keys` has a function for each key `custom:NAME`. */
export function checkCustomKeys<Fields>() {
  return v.rawCheck<Fields>(({ dataset, addIssue }) => {
    const config: unknown = dataset.value;
    if (!isRecord(config)) return;
    const names = customNames(config.custom);
    // The schema has reported that `custom` or `keys` is not an object.
    if (!names) return;
    const present = new Set(names);
    const listed = names.length > 0 ? `only ${listOfNames(names)}` : "no functions";
    // The explanation of the fault uses these names to suggest the nearest one.
    const expected = names.slice(0, MAX_COMPARED).join(", ");
    for (const { kind, name, path } of namedParts(config)) {
      if (kind !== "custom" || present.has(name)) continue;
      const message = noFunction(shortened(name), listed);
      addIssue({ path, input: name, expected, received: name, message });
    }
  });
}

/** The maximum number of names among which the explanation of a fault searches the nearest one. */
const MAX_COMPARED = 1000;

function noFunction(name: string, present: string): string {
  return (
    `the key custom:${name} needs a function in custom.keys, which has ${present}. ` +
    `Add custom: { keys: { ${name}: (request) => … } } beside rules, ` +
    'or, if only programs use the rule, add for: "programs" to it'
  );
}

/** Returns the names of the functions in `custom.keys`; undefined if they are not an object. */
function customNames(custom: unknown): string[] | undefined {
  if (custom === undefined) return [];
  const keys = isRecord(custom) ? (custom.keys ?? {}) : undefined;
  if (keys instanceof Map) return [...keys.keys()];
  return isRecord(keys) ? Object.keys(keys) : undefined;
}

/**
 * Returns the named values in the keys and tiers of all rules that count HTTP requests. For other
 * rules, programs pass the keys.
 */
function namedParts(config: Record<string, unknown>): KeyUse[] {
  const { rules } = config;
  if (!Array.isArray(rules)) return [];
  return rules.flatMap((rule: unknown, index) => {
    if (!isRecord(rule) || rule.for === "programs") return [];
    const at: KeyUse["path"] = [pathTo(config, "rules"), pathToItem(rules, index)];
    const { tiers } = rule;
    return [
      ...namesIn(rule.key, [...at, pathTo(rule, "key")]),
      ...(isRecord(tiers)
        ? namesIn(tiers.by, [...at, pathTo(rule, "tiers"), pathTo(tiers, "by")])
        : []),
    ];
  });
}

function namesIn(key: unknown, path: KeyUse["path"]): KeyUse[] {
  return partsOf(key).flatMap((part) =>
    "name" in part ? { kind: part.kind, name: part.name, path } : [],
  );
}
