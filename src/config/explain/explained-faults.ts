import type * as v from "valibot";
import {
  codeOf,
  type Fault,
  keysOf,
  MAX_FAULTS,
  MAX_SHORT,
  moreFaults,
  pathOf,
  printableName,
  shortened,
} from "../faults.ts";
import { isRecord } from "../fields.ts";
import { parseAlternatives } from "../key.ts";
import { areTierNamesSecret } from "../tiers.ts";
import { unknownFieldHint, valueHint } from "./hints.ts";
import { nearestName } from "./nearest-name.ts";

/**
 * The maximum number of issues that become faults, because searching for a suggestion takes long. The number is
 * higher than the maximum number of faults, because a field may have several issues.
 */
const MAX_ISSUES = 5 * MAX_FAULTS;

/**
 * Turns the issues of a schema into faults, at most one for each field, in the order of the issues.
 *
 * @param config the configuration as the user wrote it
 */
export function explainedFaultsOf(
  allIssues: readonly v.BaseIssue<unknown>[],
  config: unknown,
): Fault[] {
  const issues = allIssues.slice(0, MAX_ISSUES).map((issue) => inItsFile(issue, config));
  let more = allIssues.length - issues.length;
  const faults = new Map<string, Fault>();
  const intended = new Set(issues.flatMap(intendedPaths));
  for (const placed of issues) {
    const { issue, config, file } = placed;
    const keys = keysOf(issue);
    const place = pathIn(file, keys);
    const isMissing = givenValue(issue, config) === undefined;
    // If a field is misspelt, the correct field is not reported as missing.
    if (faults.has(place) || (isMissing && intended.has(place))) continue;
    if (faults.size === MAX_FAULTS) {
      more++;
      continue;
    }
    faults.set(place, {
      path: pathIn(file && shortened(file), printableKeys(keys, config)),
      code: codeOf(issue),
      message: messageOf(issue, config),
    });
  }
  return more > 0 ? [...faults.values(), moreFaults(more)] : [...faults.values()];
}

/** An issue, and a configuration in which the issue's path leads to the given value. */
interface PlacedIssue {
  readonly issue: v.BaseIssue<unknown>;
  readonly config: unknown;
  /** The name of the file with the rule; undefined if all rules are in one list. */
  readonly file?: string;
}

/**
 * If the rules are in several files, returns a rule's issue and the configuration as if the rule's file had the only
 * list of rules. So the other files of `explain/` need to know only one form of `rules`.
 */
function inItsFile(issue: v.BaseIssue<unknown>, config: unknown): PlacedIssue {
  const [top, file, index] = keysOf(issue);
  if (top !== "rules" || typeof file !== "string" || index === undefined || !isRecord(config)) {
    return { issue, config };
  }
  const [first, , ...rest] = issue.path ?? [];
  const path = [first, ...rest] as NonNullable<typeof issue.path>;
  const { rules } = config;
  return {
    issue: { ...issue, path },
    config: { ...config, rules: isRecord(rules) ? rules[file] : rules },
    file,
  };
}

/** Writes the path of a field, with the file of its rule. */
function pathIn(file: string | undefined, keys: readonly unknown[]): string {
  return pathOf(file === undefined ? keys : [keys[0], file, ...keys.slice(1)]);
}

function messageOf(issue: v.BaseIssue<unknown>, config: unknown): string {
  const keys = keysOf(issue);
  const given = givenValue(issue, config);
  if (issue.type === "never") {
    const hint = fieldHintFor(issue, config)?.text;
    return sentence("unknown field", hint, `allowed: ${issue.message}`);
  }
  if (given === undefined) return sentence("missing", undefined, requirementOf(issue));
  // The fault is in a name that the user has chosen in `custom.keys`.
  const name = keys[0] === "custom" && given === keys.at(-1) ? printableName(String(given)) : "";
  if (name) return sentence(`got ${preview(name)}`, undefined, requirementOf(issue));
  if (isHidden(keys, given))
    return sentence(`got ${kindOf(given)}`, undefined, requirementOf(issue));
  return sentence(`got ${preview(given)}`, valueHint(issue, keys, given), requirementOf(issue));
}

/**
 * Returns the requirement for a field. The message of a schema lists the allowed values. The message of
 * a check between fields is a complete sentence.
 */
function requirementOf({ type, message }: v.BaseIssue<unknown>): string {
  return type === "raw_check" ? message : `allowed: ${message}`;
}

function sentence(start: string, hint: string | undefined, requirement: string): string {
  if (!hint) return `${start}; ${requirement}`;
  if (!hint.endsWith("?")) return `${start}; ${hint}; ${requirement}`;
  return `${start}; ${hint} ${requirement.charAt(0).toUpperCase()}${requirement.slice(1)}`;
}

/** Returns the paths of the fields that the user probably meant with an unknown field. */
function intendedPaths({ issue, config, file }: PlacedIssue): string[] {
  if (issue.type !== "never") return [];
  const object = keysOf(issue).slice(0, -1);
  const fields = fieldHintFor(issue, config)?.fields ?? [];
  return fields.map((field) => pathIn(file, [...object, field]));
}

function fieldHintFor(issue: v.BaseIssue<unknown>, config: unknown) {
  const keys = keysOf(issue);
  const value = isSecret(keys) ? undefined : givenValue(issue, config);
  return unknownFieldHint(keys, issue.message.split(", "), value);
}

// A fault shows the given value on one line, shortened and without secrets.

const PREVIEW_LENGTH = 80;
/**
 * The maximum length of a text whose content is shown. No part of a longer text is shown, because it may be a part of
 * a URL that begins with a password.
 */
const LONGEST_TEXT = 300;
/** The number of items of a list or an object that a preview reads. */
const MAX_ITEMS = 20;

/** Fields of an object whose texts are shown. */
const SHOWN = /^(url|binding|name|window|limit)$/;

/** Returns the kind of a value that may be a secret, such as `a text (not shown)`. */
function kindOf(input: unknown): string {
  if (typeof input === "string") return input === "" ? '""' : "a text (not shown)";
  if (typeof input !== "object" || input === null) return preview(input);
  if (Array.isArray(input)) return input.length === 0 ? "[]" : "a list";
  return isRecord(input) && Object.keys(input).length === 0 ? "{}" : "an object";
}

/** Returns a value as a message may show it: on one line, shortened and without secrets. */
function preview(input: unknown): string {
  // The source of a function may contain a secret.
  if (typeof input === "function") return "a function";
  if (typeof input === "string" && input.length > LONGEST_TEXT) {
    return `a text of ${input.length} characters`;
  }
  if (input instanceof RegExp) return "a regular expression";
  if (input instanceof Date) return "a Date";
  if (input instanceof Promise) return "a promise";
  const text = textOf(input).replace(/\s+/g, " ");
  return text.length > PREVIEW_LENGTH ? `${text.slice(0, PREVIEW_LENGTH)}…` : text;
}

/**
 * Returns a value as JSON; for a value that JSON cannot represent (NaN, a bigint, a circular object), a short
 * description.
 */
function textOf(input: unknown): string {
  if (typeof input === "bigint") return `${input}n`.slice(0, PREVIEW_LENGTH + 1);
  if (typeof input === "symbol") return "a symbol";
  if (typeof input !== "object" && typeof input !== "string") return String(input);
  try {
    const text: string | undefined = JSON.stringify(input, hideSecrets);
    if (text !== undefined) return text;
  } catch {
    // The value has a cycle, a bigint, or a method toJSON that throws.
  }
  return Array.isArray(input) ? "a list" : "an object";
}

/**
 * A replacer for JSON. Hides the fields that may contain a secret, and the texts in objects, whose field names the
 * user may have chosen. Shortens long lists and objects.
 */
function hideSecrets(this: unknown, key: string, value: unknown): unknown {
  if (key === "exempt" || key === "secret" || key === "tiers") return "…";
  if (typeof value === "string") {
    const isField = key !== "" && isRecord(this);
    return (isField && !SHOWN.test(key)) || value.length > LONGEST_TEXT
      ? "…"
      : withoutCredentials(value);
  }
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).slice(0, MAX_ITEMS));
}

/** Hides passwords and queries in URLs, and the text after the name in a key, such as `header:NAME:SECRET`. */
function withoutCredentials(text: string): string {
  return text
    .replace(/(?<=\/\/|^(?!\/)).*@/s, "…@")
    .replace(/((header|cookie|query):[^:=|]*[:=]).*/s, "$1…")
    .replace(/(?<=\/\/.*)[?#].*|(?<=^[^/?][^?]*)\?(?=[^=]*=).*/s, "?…");
}

/**
 * Returns the value that the user wrote at the path of an issue. The configuration has this value. If a check runs
 * after parsing, the issue has only the parsed value, such as 60 for a window of `"1m"`.
 */
function givenValue(issue: v.BaseIssue<unknown>, config: unknown): unknown {
  // The fault is in a name that the user has chosen, such as the name of a tier. Valibot also reports `origin: "key"`
  // for a missing field, but without an input.
  const isName = issue.path?.at(-1)?.origin === "key" && issue.input !== undefined;
  if (isName) return keysOf(issue).at(-1);
  return valueAt(config, keysOf(issue));
}

/** Returns the value at a path; undefined if there is none. */
function valueAt(config: unknown, keys: readonly unknown[]): unknown {
  let value = config;
  for (const key of keys) {
    if (typeof value !== "object" || value === null) return undefined;
    if (!Object.hasOwn(value, key as PropertyKey)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[key as PropertyKey];
  }
  return value;
}

/** The fields in which users write a secret by mistake. */
const SENSITIVE = new Set<unknown>(["exempt", "jwt", "custom", "tiers"]);

/**
 * The texts in these fields that cannot be secrets, because they have the form of an address, an algorithm, a URL, a
 * key or a length of time.
 */
const HARMLESS: ReadonlyMap<string, RegExp> = new Map(
  Object.entries({
    ips: /^(?=.{0,60}$)[\da-f]*[.:][\da-f.:*x]*(\/[\d.]*)?$/i,
    alg: /^[A-Za-z]{1,6}-?\d{0,4}$/,
    algs: /^[A-Za-z]{1,6}-?\d{0,4}$/,
    jwks: /^[a-z]+:\/\//i,
    by: /^\s*((ip|host|path|method|country|asn|ja4|global|header|cookie|query|param|jwt|custom)\b|[a-z]{1,12}$)/i,
    window: /^\s*\d[\w\s./,]{0,15}$/,
    limit: /^\s*\d[\w\s./,]{0,15}$/,
  }),
);

/** Whether only the kind of a value is shown, because its field often holds secrets. */
function isHidden(keys: readonly unknown[], value: unknown): boolean {
  if (isConditionValue(keys)) return true;
  if (!keys.some((key) => SENSITIVE.has(key))) return false;
  if (typeof value === "object" && value !== null) return true;
  const field = keys.findLast((key) => typeof key !== "number");
  return typeof value === "string" && HARMLESS.get(String(field))?.test(value) !== true;
}

/** Whether a value is the expected value of a header or query parameter in a condition, which may be a credential. */
function isConditionValue(keys: readonly unknown[]): boolean {
  const rest = keys.slice(keys.indexOf("match") + 1);
  const at = rest.findIndex((key) => key === "headers" || key === "query");
  return keys.includes("match") && at !== -1 && rest.length > at + 1;
}

/** Whether the value at a path may be a secret, even if the secret is there by mistake. */
function isSecret(keys: readonly unknown[]): boolean {
  const at = keys.indexOf("exempt");
  return keys.at(-1) === "secret" || (at !== -1 && keys[at + 1] !== "ips");
}

/**
 * Returns the path to print. Hides the names of tiers if these names may be credentials. Hides the text after `:` or
 * `=` in names of headers, because a user may write a header with its secret value in place of the name.
 */
function printableKeys(keys: readonly unknown[], config: unknown): unknown[] {
  const shownKeys = keys.map((key, index) => {
    if (typeof key !== "string") return key;
    const name = isSecret(keys)
      ? key.replace(key.length > MAX_SHORT ? /(?<=[:=\s]).*/s : /(?<=[:=]).*/s, "…")
      : key;
    return isChosen(keys, index) ? printableName(name) : shortened(name);
  });
  const tiers = secretTiersOf(keys, config);
  if (!tiers) return shownKeys;
  const { at, limits } = tiers;
  const [field, name] = [keys[at + 1], keys[at + 2]];
  if (field === "limits") {
    const index = isRecord(limits) ? Object.keys(limits).indexOf(String(name)) : -1;
    if (index !== -1) shownKeys[at + 2] = `(tier ${index + 1})`;
  } else if (typeof field === "string" && !nearestName(field, ["by", "limits"])) {
    // The user has written the tier outside `limits`, so the schema reports the tier as an unknown field.
    shownKeys[at + 1] = "…";
  }
  return shownKeys;
}

/** Whether a name in a path stands where a user may have written a secret by mistake. */
function isChosen(keys: readonly unknown[], index: number): boolean {
  const at = keys.findIndex((key) => SENSITIVE.has(key));
  if (at === -1 || index <= at) return false;
  // The names of headers and of tiers are necessary to find the fault.
  const parent = keys[index - 1];
  return (
    !(keys[at] === "exempt" && parent === "headers") &&
    !(keys[at] === "tiers" && parent === "limits")
  );
}

/**
 * Returns the position of `tiers` in a path, and the limits of the tiers. Returns undefined if the path has no tiers,
 * or if the names of the tiers cannot be credentials.
 */
function secretTiersOf(keys: readonly unknown[], config: unknown) {
  const at = keys.indexOf("tiers");
  if (at === -1) return undefined;
  const tiers = valueAt(config, keys.slice(0, at + 1));
  const { by, limits } = isRecord(tiers) ? tiers : {};
  const parsed = typeof by === "string" ? parseAlternatives(by) : undefined;
  return !parsed || areTierNamesSecret([parsed]) ? { at, limits } : undefined;
}
