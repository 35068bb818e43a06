import type * as v from "valibot";

/** A fault of a configuration. */
export interface Fault {
  /** The path of the field, such as `rules[0].limits[1].window`; empty for the whole configuration. */
  readonly path: string;
  /** The given value, the cure if Weir knows one, and the allowed values. */
  readonly message: string;
}

/** Fields whose content, including the names of its fields, may be a secret. */
const MAY_HOLD_SECRETS = new Set(["exempt", "tiers", "custom"]);

/**
 * Turns the issues of a schema into faults with the path and the allowed values only. A deployed
 * Worker uses this function, because `weir check` has already printed the explained faults, and the
 * code that explains them would make the Worker's bundle larger.
 */
export function shortFaultsOf(issues: readonly v.BaseIssue<unknown>[]): Fault[] {
  return issues.map((issue) => {
    const keys = keysOf(issue);
    const secret = keys.findIndex((key) => MAY_HOLD_SECRETS.has(String(key)));
    const shown = secret === -1 ? keys : keys.slice(0, secret + 1);
    return { path: pathOf(shown), message: requirementOf(issue) };
  });
}

/**
 * Returns the requirement for a field. The message of a schema lists the allowed values. The message of
 * a check between fields is a complete sentence.
 */
export function requirementOf({ type, message }: v.BaseIssue<unknown>): string {
  return type === "raw_check" ? message : `allowed: ${message}`;
}

/** Returns the keys of the path of an issue, from the configuration to the field. */
export function keysOf(issue: v.BaseIssue<unknown>): unknown[] {
  return issue.path?.map(({ key }) => key) ?? [];
}

/** Writes a path in the notation of JavaScript: `rules[0].match`. */
export function pathOf(keys: readonly unknown[]): string {
  return keys
    .map((key) => {
      if (/^\d+$/.test(String(key))) return `[${key}]`;
      return /^[A-Za-z_]\w*$/.test(String(key)) ? `.${key}` : `[${JSON.stringify(key)}]`;
    })
    .join("")
    .replace(/^\./, "");
}
