import type * as v from "valibot";
import { isRecord, nearestName } from "./fields.ts";
import { parseAlternatives } from "./key-expression.ts";
import { areTierNamesSecret } from "./tier-names.ts";

/** One thing that is wrong with a configuration. */
export interface Fault {
  /** Where, as in `rules[0].limits[1].window`; empty for the configuration as a whole. */
  readonly path: string;
  /** What was given, and what is allowed. */
  readonly message: string;
}

/** The faults behind a schema's issues: at most one for each place, in the order of the places. */
export function faultsOf(issues: readonly v.BaseIssue<unknown>[]): Fault[] {
  const faults = new Map<string, Fault>();
  const meant = new Set(issues.map(meantPath));
  for (const issue of issues) {
    const keys = keysOf(issue);
    const place = pathOf(keys);
    const missing = issue.input === undefined;
    // The misspelt field is the fault; that the one it stands for is missing would say it twice.
    if (faults.has(place) || (missing && meant.has(place))) continue;
    faults.set(place, { path: pathOf(withoutValues(keys, issue)), message: messageOf(issue) });
  }
  return [...faults.values()];
}

function messageOf(issue: v.BaseIssue<unknown>): string {
  if (issue.type === "never") {
    const meant = nearestNameOf(issue);
    return `unknown field${meant ? `; did you mean "${meant}"?` : ""}; allowed: ${issue.message}`;
  }
  if (issue.input === undefined) return `missing; allowed: ${issue.message}`;
  const meant = nearestWordOf(issue);
  const hint = meant ? `; did you mean "${meant}"?` : "";
  const given =
    isSecret(keysOf(issue)) || isTierSecret(issue) ? kindOf(issue.input) : preview(issue.input);
  return `got ${given}${hint}; allowed: ${issue.message}`;
}

/** Where a secret may stand, also by mistake: faults are printed, and logged by the Worker. */
function isSecret(keys: readonly unknown[]): boolean {
  const at = keys.indexOf("exempt");
  return keys.at(-1) === "secret" || (at !== -1 && keys[at + 1] !== "ips");
}

/** A whole field in place of a header's name is a secret, too. */
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
    // A tier that is not within limits, where an unknown field is reported.
    shownKeys[at + 1] = "…";
  }
  return shownKeys;
}

/** Where in an issue's path the tiers stand whose names may be credentials, and their limits. */
function secretTiersOf(issue: v.BaseIssue<unknown>) {
  const at = keysOf(issue).indexOf("tiers");
  if (at === -1) return undefined;
  const rule: unknown = issue.path?.[at]?.input;
  const tiers = isRecord(rule) ? rule.tiers : undefined;
  const { by, limits } = isRecord(tiers) ? tiers : {};
  const parsed = typeof by === "string" ? parseAlternatives(by) : undefined;
  return !parsed || areTierNamesSecret([parsed]) ? { at, limits } : undefined;
}

/** All of the tiers, all of their limits, or one tier with its name. */
function isTierSecret(issue: v.BaseIssue<unknown>): boolean {
  const tiers = secretTiersOf(issue);
  if (!tiers) return false;
  const [field, , ...inTier] = keysOf(issue).slice(tiers.at + 1);
  return field === undefined || (field === "limits" && inTier.length === 0);
}

function kindOf(input: unknown): string {
  if (typeof input === "string") return input === "" ? '""' : "a text that is not shown here";
  if (typeof input !== "object" || input === null) return preview(input);
  const entries = Object.keys(input).length;
  if (entries === 0) return preview(input);
  return Array.isArray(input) ? "a list" : "an object";
}

/** Where the field would be that an unknown one was probably meant to be. */
function meantPath(issue: v.BaseIssue<unknown>): string | undefined {
  const meant = issue.type === "never" ? nearestNameOf(issue) : undefined;
  return meant && pathOf([...keysOf(issue).slice(0, -1), meant]);
}

function nearestNameOf(issue: v.BaseIssue<unknown>): string | undefined {
  const given = keysOf(issue).at(-1);
  return typeof given === "string" ? nearestName(given, issue.message.split(", ")) : undefined;
}

/** For one of a few words: the one that was probably meant. */
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
  // Its source may have a secret in it.
  if (typeof input === "function") return "a function";
  const text = (toJson(input) ?? String(input)).replace(/\s+/g, " ");
  return text.length > PREVIEW_LENGTH ? `${text.slice(0, PREVIEW_LENGTH)}…` : text;
}

/** Without what a secret may be in. */
function shown(key: string, value: unknown): unknown {
  if (key === "exempt" || key === "secret" || key === "tiers") return "…";
  return typeof value === "string" ? withoutCredentials(value) : value;
}

/** Passwords in URLs, the values of queries, and what follows a key's name. */
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

/** JSON where there is such a thing: not for NaN, a bigint, a function, a symbol, what is circular. */
function toJson(input: unknown): string | undefined {
  if (typeof input === "number") return String(input);
  if (typeof input === "bigint") return `${input}n`;
  try {
    return JSON.stringify(input, shown);
  } catch {
    return Array.isArray(input) ? "a list" : "an object";
  }
}
