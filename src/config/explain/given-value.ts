import type * as v from "valibot";
import { keysOf } from "../faults.ts";
import { isRecord } from "../fields.ts";
import { parseAlternatives } from "../key-expression.ts";
import { areTierNamesSecret } from "../tier-names.ts";
import { nearestName } from "./nearest-name.ts";

/**
 * Returns the value that the user wrote at the path of an issue. The value comes from the
 * configuration, not from the issue: if a check runs after parsing, the issue has the parsed value,
 * such as 60 for a window of `"1m"`.
 */
export function givenValue(issue: v.BaseIssue<unknown>, config: unknown): unknown {
  // The fault is in a name that the user has chosen, such as the name of a tier. For a missing field,
  // Valibot also reports `origin: "key"`, but no input.
  const isName = issue.path?.at(-1)?.origin === "key" && issue.input !== undefined;
  if (isName) return keysOf(issue).at(-1);
  return valueAt(config, keysOf(issue));
}

/** Returns the value at a path; undefined if there is none. */
export function valueAt(config: unknown, keys: readonly unknown[]): unknown {
  let value = config;
  for (const key of keys) {
    if (typeof value !== "object" || value === null) return undefined;
    if (!Object.hasOwn(value, key as PropertyKey)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key as PropertyKey];
  }
  return value;
}

/** Returns a value as a message may show it: shortened, on one line, and without secrets. */
export function printable(keys: readonly unknown[], value: unknown, config: unknown): string {
  return isSecret(keys) || isTierSecret(keys, config) ? kindOf(value) : preview(value);
}

/**
 * Whether the value at a path may be a secret, even if the secret is there by mistake. Faults are
 * printed and logged, so they must not contain a secret.
 */
export function isSecret(keys: readonly unknown[]): boolean {
  const at = keys.indexOf("exempt");
  return keys.at(-1) === "secret" || (at !== -1 && keys[at + 1] !== "ips");
}

/**
 * Returns the path to print. It hides the names of tiers if these names may be credentials. It also
 * hides the text after `:` or `=` in names of headers, because a user may write a header together
 * with its secret value in place of the name alone.
 */
export function printableKeys(keys: readonly unknown[], config: unknown): unknown[] {
  const shownKeys = keys.map((key) =>
    isSecret(keys) && typeof key === "string" ? key.replace(/(?<=[:=]).*/s, "…") : key,
  );
  const tiers = secretTiersOf(keys, config);
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
 * Returns the position of `tiers` in a path, and the limits of the tiers. The result is undefined if
 * the path does not concern tiers, or if the names of the tiers cannot be credentials.
 */
function secretTiersOf(keys: readonly unknown[], config: unknown) {
  const at = keys.indexOf("tiers");
  if (at === -1) return undefined;
  const tiers = valueAt(config, keys.slice(0, at + 1));
  const { by, limits } = isRecord(tiers) ? tiers : {};
  const parsed = typeof by === "string" ? parseAlternatives(by) : undefined;
  return !parsed || areTierNamesSecret([parsed]) ? { at, limits } : undefined;
}

/** Whether the value at a path may contain a client's credential as the name of a tier. */
function isTierSecret(keys: readonly unknown[], config: unknown): boolean {
  const tiers = secretTiersOf(keys, config);
  if (!tiers) return false;
  const [field, , ...inTier] = keys.slice(tiers.at + 1);
  return field === undefined || (field === "limits" && inTier.length === 0);
}

function kindOf(input: unknown): string {
  if (typeof input === "string") return input === "" ? '""' : "a text (not shown)";
  if (typeof input !== "object" || input === null) return preview(input);
  const entries = Object.keys(input).length;
  if (entries === 0) return preview(input);
  return Array.isArray(input) ? "a list" : "an object";
}

const PREVIEW_LENGTH = 80;

function preview(input: unknown): string {
  // The source of a function may contain a secret.
  if (typeof input === "function") return "a function";
  if (input instanceof RegExp) return "a regular expression";
  if (input instanceof Date) return "a Date";
  if (input instanceof Promise) return "a promise";
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
export function withoutCredentials(text: string): string {
  return text
    .replace(/(?<=\/\/).*@/s, "…@")
    .replace(/^[^/\s]+@/, "…@")
    .replace(/^((header|cookie|query):[^:=|]*[:=]).*/s, "$1…")
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
