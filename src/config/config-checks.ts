import * as v from "valibot";
import { isRecord, nearestName, pathTo, pathToItem } from "./fields.ts";

// These checks concern a rule and a field of the whole configuration. They also check a value with
// other faults, so that all faults are reported at once.

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
      "a claim only if the top-level field jwt is set, which configures how Weir verifies tokens";
    for (const { kind, name, path } of namedParts(config)) {
      if (kind === "jwt") addIssue({ path, input: `jwt:${name}`, message });
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
    for (const { kind, name, path } of namedParts(config)) {
      if (kind !== "custom" || names.includes(name)) continue;
      addIssue({ path, input: `custom:${name}`, message: noFunction(name, names) });
    }
  });
}

function noFunction(name: string, names: readonly string[]): string {
  const nearest = nearestName(name, names);
  const hint = nearest === undefined ? "" : ` (did you mean custom:${nearest}?)`;
  return (
    `a key whose function is in custom.keys, which has ${names.join(", ") || "none"}${hint}; ` +
    `add custom: { keys: { ${name}: (request) => … } } beside rules, ` +
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
 * Returns the named values in the keys and tiers of all rules that count HTTP requests. In the keys of all
 * other rules, programs give the values.
 */
function namedParts(config: Record<string, unknown>): KeyUse[] {
  const { rules } = config;
  if (!Array.isArray(rules)) return [];
  return rules.flatMap((rule: unknown, index) => {
    if (!isRecord(rule) || rule.for === "programs") return [];
    const at: KeyUse["path"] = [pathTo(config, "rules"), pathToItem(rules, index)];
    const { tiers } = rule;
    return [
      ...partsOf(rule.key, [...at, pathTo(rule, "key")]),
      ...(isRecord(tiers)
        ? partsOf(tiers.by, [...at, pathTo(rule, "tiers"), pathTo(tiers, "by")])
        : []),
    ];
  });
}

/** Returns the named values of a parsed key. A key with faults is not parsed, and has none. */
function partsOf(key: unknown, path: KeyUse["path"]): KeyUse[] {
  if (!Array.isArray(key)) return [];
  return key
    .flat()
    .filter((part) => isRecord(part) && typeof part.name === "string")
    .map(({ kind, name }) => ({ kind, name, path }));
}
