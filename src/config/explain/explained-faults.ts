import type * as v from "valibot";
import { type Fault, keysOf, MAX_FAULTS, moreFaults, pathOf, shortened } from "../faults.ts";
import { isRecord } from "../fields.ts";
import { givenValue, isSecret, isShown, printable, printableKeys } from "./given-value.ts";
import { secretHint, unknownFieldHint, valueHint } from "./hints.ts";

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
  const issues = allIssues.slice(0, MAX_ISSUES).map((issue) => inItsFile(issue, config));
  let more = allIssues.length - issues.length;
  const faults = new Map<string, Fault>();
  const intended = new Set(issues.flatMap(intendedPaths));
  for (const placed of issues) {
    const { issue, config, file } = placed;
    const keys = keysOf(issue);
    const place = pathIn(file, keys);
    const isMissing = givenValue(issue, config) === undefined;
    // If a field is misspelt, the correct field is not reported as missing too.
    if (faults.has(place) || (isMissing && intended.has(place))) continue;
    if (faults.size === MAX_FAULTS) {
      more++;
      continue;
    }
    faults.set(place, {
      path: pathIn(file && shortened(file), printableKeys(keys, config)),
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
 * If the rules are in several files, returns a rule's issue and the configuration as if the file of
 * this rule had the only list of rules. So the other files of `explain/` need to know only one form
 * of `rules`.
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
  const hint = isSecret(keys)
    ? secretHint(keys, given)
    : isShown(keys, given, config)
      ? valueHint(issue, keys, given)
      : undefined;
  return sentence(`got ${printable(keys, given, config)}`, hint, requirementOf(issue));
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

/** Returns the paths of the fields that the user probably meant by an unknown field. */
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
