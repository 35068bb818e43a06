import type * as v from "valibot";
import { type Fault, keysOf, MAX_FAULTS, moreFaults, pathOf, requirementOf } from "../faults.ts";
import { unknownFieldHint } from "./field-hint.ts";
import { givenValue, printable, printableKeys } from "./given-value.ts";
import { valueHint } from "./value-hint.ts";

/**
 * The maximum number of issues that become faults. A field may have several issues, so this number is
 * higher than the maximum number of faults. Searching for a suggestion takes long.
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
  const issues = allIssues.slice(0, MAX_ISSUES);
  let more = allIssues.length - issues.length;
  const faults = new Map<string, Fault>();
  const intended = new Set(issues.flatMap((issue) => intendedPaths(issue, config)));
  for (const issue of issues) {
    const keys = keysOf(issue);
    const place = pathOf(keys);
    const isMissing = givenValue(issue, config) === undefined;
    // If a field is misspelt, the correct field is not reported as missing too.
    if (faults.has(place) || (isMissing && intended.has(place))) continue;
    if (faults.size === MAX_FAULTS) {
      more++;
      continue;
    }
    faults.set(place, {
      path: pathOf(printableKeys(keys, config)),
      message: messageOf(issue, config),
    });
  }
  return more > 0 ? [...faults.values(), moreFaults(more)] : [...faults.values()];
}

function messageOf(issue: v.BaseIssue<unknown>, config: unknown): string {
  const keys = keysOf(issue);
  const given = givenValue(issue, config);
  if (issue.type === "never") {
    const hint = unknownFieldHint(keys, allowedNames(issue), config)?.text;
    return sentence("unknown field", hint, `allowed: ${issue.message}`);
  }
  if (given === undefined) return sentence("missing", undefined, requirementOf(issue));
  const hint = valueHint({ issue, keys, given });
  return sentence(`got ${printable(keys, given, config)}`, hint, requirementOf(issue));
}

function sentence(start: string, hint: string | undefined, requirement: string): string {
  if (!hint) return `${start}; ${requirement}`;
  if (!hint.endsWith("?")) return `${start}; ${hint}; ${requirement}`;
  return `${start}; ${hint} ${requirement.charAt(0).toUpperCase()}${requirement.slice(1)}`;
}

/** Returns the paths of the fields that the user probably meant by an unknown field. */
function intendedPaths(issue: v.BaseIssue<unknown>, config: unknown): string[] {
  if (issue.type !== "never") return [];
  const keys = keysOf(issue);
  const fields = unknownFieldHint(keys, allowedNames(issue), config)?.fields ?? [];
  return fields.map((field) => pathOf([...keys.slice(0, -1), field]));
}

function allowedNames(issue: v.BaseIssue<unknown>): string[] {
  return issue.message.split(", ");
}
