import type * as v from "valibot";
import { isRecord, nearestName } from "./fields.ts";
import { parseAlternatives } from "./key-expression.ts";
import { areTierNamesSecret } from "./tier-names.ts";

/** A fault of a configuration. */
export interface Fault {
  /** The path of the field, such as `rules[0].limits[1].window`; empty for the whole configuration. */
  readonly path: string;
  /** The given value, and the allowed values. */
  readonly message: string;
}

/**
 * Turns the issues of a schema into faults, at most one for each field, in the order of the issues.
 */
export function faultsOf(issues: readonly v.BaseIssue<unknown>[]): Fault[] {
  const faults = new Map<string, Fault>();
  const intended = new Set(issues.map(intendedPath));
  for (const issue of issues) {
    const keys = keysOf(issue);
    const place = pathOf(keys);
    const missing = issue.input === undefined;
    // If a field is misspelt, the correct field is not reported as missing too.
    if (faults.has(place) || (missing && intended.has(place))) continue;
    faults.set(place, { path: pathOf(withoutValues(keys, issue)), message: messageOf(issue) });
  }
  return [...faults.values()];
}

function messageOf(issue: v.BaseIssue<unknown>): string {
  if (issue.type === "never") {
    const intended = nearestNameOf(issue);
    return `unknown field${intended ? `; did you mean "${intended}"?` : ""}; allowed: ${issue.message}`;
  }
  if (issue.input === undefined) return `missing; allowed: ${issue.message}`;
  const intended = nearestWordOf(issue);
  const hint = intended ? `; did you mean "${intended}"?` : "";
  const given =
    isSecret(keysOf(issue)) || isTierSecret(issue) ? kindOf(issue.input) : preview(issue.input);
  return `got ${given}${hint}; allowed: ${issue.message}`;
}

/**
 * Whether the value at a path may be a secret, even if the secret is there by mistake. Faults are
 * printed and logged, so they must not contain a secret.
 */
function isSecret(keys: readonly unknown[]): boolean {
  const at = keys.indexOf("exempt");
  return keys.at(-1) === "secret" || (at !== -1 && keys[at + 1] !== "ips");
}

/**
 * Returns the path to print. It hides the names of tiers if these names may be credentials. It also
 * hides the text after `:` or `=` in names of headers, because a user may write a header together
 * with its secret value in place of the name alone.
 */
function withoutValues(keys: readonly unknown[], issue: v.BaseIssue<unknown>): unknown[] {
  const shownKeys = keys.map((key) =>
    isSecret(keys) && typeof key === "string" ? key.replace(/(?<=[:=]).*/s, "…") : key,
  );
  const tiers = secretTiersOf(issue);
  if (!tiers) return shownKeys;
  const { at, limits } = tiers;
  const [field, name] = [keys[at + 1], keys[at + 2]];
  if (field === "limits") {
    const index = isRecord(limits) ? Object.keys(limits).indexOf(String(name)) : -1;
    if (index !== -1) shownKeys[at + 2] = `(tier ${index + 1})`;
  } else if (typeof field === "string" && !nearestName(field, ["by", "limits"])) {
    // The user has written the tier outside `limits`, so the schema reports the tier as an unknown
    // field.
    shownKeys[at + 1] = "…";
  }
  return shownKeys;
}

/**
 * Returns the position of `tiers` in an issue's path, and the limits of the tiers. The result is
 * undefined if the issue does not concern tiers, or if the names of the tiers cannot be
 * credentials.
 */
function secretTiersOf(issue: v.BaseIssue<unknown>) {
  const at = keysOf(issue).indexOf("tiers");
  if (at === -1) return undefined;
  const rule: unknown = issue.path?.[at]?.input;
  const tiers = isRecord(rule) ? rule.tiers : undefined;
  const { by, limits } = isRecord(tiers) ? tiers : {};
  const parsed = typeof by === "string" ? parseAlternatives(by) : undefined;
  return !parsed || areTierNamesSecret([parsed]) ? { at, limits } : undefined;
}

/**
 * Whether the value that the issue reports may contain a client's credential as the name of a tier.
 */
function isTierSecret(issue: v.BaseIssue<unknown>): boolean {
  const tiers = secretTiersOf(issue);
  if (!tiers) return false;
  const [field, , ...inTier] = keysOf(issue).slice(tiers.at + 1);
  return field === undefined || (field === "limits" && inTier.length === 0);
}

function kindOf(input: unknown): string {
  if (typeof input === "string") return input === "" ? '""' : "a text (not shown)";
  if (typeof input !== "object" || input === null) return preview(input);
  const entries = Object.keys(input).length;
  if (entries === 0) return preview(input);
  return Array.isArray(input) ? "a list" : "an object";
}

/**
 * Returns the path of the field that the user probably meant, if an issue reports an unknown field.
 */
function intendedPath(issue: v.BaseIssue<unknown>): string | undefined {
  const intended = issue.type === "never" ? nearestNameOf(issue) : undefined;
  return intended && pathOf([...keysOf(issue).slice(0, -1), intended]);
}

function nearestNameOf(issue: v.BaseIssue<unknown>): string | undefined {
  const given = keysOf(issue).at(-1);
  return typeof given === "string" ? nearestName(given, issue.message.split(", ")) : undefined;
}

/** Returns the allowed word that the user probably meant. */
function nearestWordOf({ type, input, expected }: v.BaseIssue<unknown>): string | undefined {
  if (type !== "picklist" || typeof input !== "string") return undefined;
  const words = [...(expected ?? "").matchAll(/"([^"]+)"/g)].map(([, word]) => word as string);
  return nearestName(input, words);
}

function keysOf(issue: v.BaseIssue<unknown>): unknown[] {
  return issue.path?.map(({ key }) => key) ?? [];
}

function pathOf(keys: readonly unknown[]): string {
  return keys
    .map((key) => {
      if (/^\d+$/.test(String(key))) return `[${key}]`;
      return /^[A-Za-z_]\w*$/.test(String(key)) ? `.${key}` : `[${JSON.stringify(key)}]`;
    })
    .join("")
    .replace(/^\./, "");
}

const PREVIEW_LENGTH = 80;

function preview(input: unknown): string {
  // The source of a function may contain a secret.
  if (typeof input === "function") return "a function";
  const text = (toJson(input) ?? String(input)).replace(/\s+/g, " ");
  return text.length > PREVIEW_LENGTH ? `${text.slice(0, PREVIEW_LENGTH)}…` : text;
}

/** A replacer for JSON: hides the fields that may contain a secret. */
function hideSecrets(key: string, value: unknown): unknown {
  if (key === "exempt" || key === "secret" || key === "tiers") return "…";
  return typeof value === "string" ? withoutCredentials(value) : value;
}

/**
 * Hides passwords in URLs, values in queries, and the text after the name in a key, such as
 * `SECRET` in `header:NAME:SECRET`.
 */
function withoutCredentials(text: string): string {
  return text
    .replace(/(?<=\/\/).*@/s, "…@")
    .replace(/^[^/\s]+@/, "…@")
    .replace(/^((header|cookie|query):[^:=]*[:=]).*/s, "$1…")
    .replace(/^([^?#]*\/\/[^?#]*[?#]|[^/?][^?]*\?(?=[^=]*=)).*/s, (all, before: string) => {
      const query = all.slice(before.length);
      return (
        before +
        query.replace(
          /([^=&#;]*)(=?)[^&#;]*/g,
          (part, name, equals) => part && (equals ? `${name}=…` : "…"),
        )
      );
    });
}

/**
 * Returns a value as JSON. For a value that JSON cannot represent (NaN, a bigint, a circular
 * object), it returns a short description.
 */
function toJson(input: unknown): string | undefined {
  if (typeof input === "number") return String(input);
  if (typeof input === "bigint") return `${input}n`;
  try {
    return JSON.stringify(input, hideSecrets);
  } catch {
    return Array.isArray(input) ? "a list" : "an object";
  }
}
