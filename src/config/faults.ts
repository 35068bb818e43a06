import type * as v from "valibot";

/**
 * The global scope, with the only value that Weir reads to recognise a bundle for development.
 *
 * Bundlers replace `globalThis.process?.env?.NODE_ENV` by a constant: "development" under `wrangler dev`,
 * "production" under `wrangler deploy`. esbuild then removes the code behind a false comparison, and the functions
 * that only this code calls. So each place writes the comparison in full: with a constant or a function of this
 * module, esbuild would not remove the code. In other bundles, `process` may be missing, so the expression contains
 * `?.`.
 */
export interface NodeGlobals {
  readonly process?: { readonly env?: { readonly NODE_ENV?: string } };
}

/**
 * Returns the text of a fault. The argument is the text, or a function that builds the text. In a minified bundle of
 * `wrangler deploy`, the result is undefined: esbuild empties this function and removes the arguments of its calls.
 * This saves 5 KiB of the bundle after gzip. The texts are not missed, because `weir check` has already printed them.
 *
 * esbuild keeps an argument that contains a call or a variable, so write such a text as a function. esbuild also
 * keeps functions and constants that are declared outside of the argument. If no other code uses them, declare them
 * inside of it.
 */
export function faultText(text: string | (() => string)): string;
export function faultText(text: string | (() => string)): string | undefined {
  if ((globalThis as NodeGlobals).process?.env?.NODE_ENV !== "production") {
    return typeof text === "function" ? text() : text;
  }
  return;
}

/** The codes of faults, for programs. A code stays the same in later versions. docs/codes.md explains each of them. */
export const FAULT_CODES = [
  "missing",
  "unknown-field",
  "not-allowed",
  "too-many",
  "duplicate",
  "conflict",
  "needs",
  "more-faults",
] as const;

/** The kind of a fault, so that programs need not read its message. */
export type FaultCode = (typeof FAULT_CODES)[number];

/** A fault of a configuration. */
export interface Fault {
  /** The path of the field, such as `rules[0].limits[1].window`; empty for the whole configuration. */
  readonly path: string;
  /** The kind of the fault, such as `"missing"`. docs/codes.md lists all codes. */
  readonly code: FaultCode;
  /**
   * The given value, the cure if Weir knows one, and the allowed values. In a Worker that `wrangler
   * deploy` has bundled: the code.
   */
  readonly message: string;
}

/** The maximum number of listed faults. In a longer list, the last element has the number of further faults. */
export const MAX_FAULTS = 500;
/** The maximum length of a name or a given text in a path or a message, in characters. */
const MAX_NAME = 80;
/** The maximum number of names that a message lists. */
const MAX_NAMES = 20;

/** Returns the first {@link MAX_NAME} characters of a name or a given text. */
export function shortened(name: string): string {
  return name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name;
}

/** Returns names for a message, at most {@link MAX_NAMES} of them. */
export function listOfNames(names: readonly string[]): string {
  return faultText(() => {
    const rest = names.length - MAX_NAMES;
    const listed = names.slice(0, MAX_NAMES).map(shortened).join(", ");
    return rest > 0 ? `${listed} and ${rest} more` : listed;
  });
}

/** Returns the last element of a list that is cut. */
export function moreFaults(count: number): Fault {
  return {
    path: "",
    code: "more-faults",
    message: `and ${count} more; correct the listed faults first`,
  };
}

/** The maximum length of a name without digits that is too short for a secret. */
export const MAX_SHORT = 12;

/**
 * Returns a name in full if it is short or consists of a few lower-case words, such as the name of a field. Returns the
 * first three characters of any other name, because users may write a secret in place of a name.
 */
export function printableName(name: string): string {
  const isShort = name.length <= MAX_SHORT && !/\d/.test(name);
  const isWords = /^(?=.{1,20}$)[a-z]+([A-Z_-]?[a-z]+)*$/.test(name);
  return isShort || isWords ? name : `${name.slice(0, 3)}…`;
}

/** Fields whose content, including the names of its fields, may be a secret. */
const MAY_HOLD_SECRETS = new Set(["exempt", "tiers", "custom"]);

/**
 * Turns the issues of a schema into faults with the path and the code only. A deployed Worker uses this function:
 * `weir check` has already printed the explained faults, and their texts would make the bundle larger.
 */
export function shortFaultsOf(issues: readonly v.BaseIssue<unknown>[]): Fault[] {
  const more = issues.length - MAX_FAULTS;
  const faults = issues.slice(0, MAX_FAULTS).map((issue): Fault => {
    const keys = keysOf(issue);
    const secret = keys.findIndex((key) => MAY_HOLD_SECRETS.has(String(key)));
    const shown = secret === -1 ? keys : keys.slice(0, secret + 1);
    const path = pathOf(
      shown.map((key, index) => {
        if (typeof key !== "string") return key;
        // The name of a file with rules is necessary to find the rule.
        const isFile = index === 1 && keys[0] === "rules" && keys.length > 2;
        return isFile ? shortened(key) : printableName(key);
      }),
    );
    const code = codeOf(issue);
    return { path, code, message: code };
  });
  return more > 0 ? [...faults, moreFaults(more)] : faults;
}

/**
 * Returns the code of an issue. Valibot's issues have no field for a code, so the checks of this folder put it into
 * `expected`, which no message contains.
 */
export function codeOf({ type, input, expected }: v.BaseIssue<unknown>): FaultCode {
  if (type === "raw_check") return expected as FaultCode;
  // The issue is about a field that the schema of an object does not have.
  if (expected === "never") return "unknown-field";
  return input === undefined ? "missing" : "not-allowed";
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
