import * as v from "valibot";
import { parseIsoTime } from "../config/calendar.ts";
import { durationUpTo } from "../config/duration.ts";
import { codeOf, type Fault, type FaultCode, keysOf, pathOf, shortened } from "../config/faults.ts";
import { isRecord } from "../config/fields.ts";
import type { Rule } from "../config/rule.ts";
import { MAX_CONCURRENT } from "../config/window.ts";
import {
  type ClientEffect,
  ClientEffectSchema,
  ReasonSchema,
  type RuleEffect,
  RuleEffectSchema,
} from "./override.ts";

// Parts of the messages about the fields of an override.

/** The maximum number of names that a message lists. */
const MAX_NAMES = 20;

/** Returns names for a message. */
export function listNames(names: readonly string[]): string {
  const rest = names.length - MAX_NAMES;
  const listed = names.slice(0, MAX_NAMES).join(", ") || "there are none";
  return rest > 0 ? `${listed}, and ${rest} more` : listed;
}

/** Describes a value other than the expected one, as the end of a sentence. */
function notGiven(value: unknown): string {
  return value === undefined ? "but is missing" : `not ${shown(value)}`;
}

function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(shortened(value));
  if (typeof value === "number" || typeof value === "boolean" || value === null)
    return String(value);
  if (value instanceof Date)
    return Number.isNaN(value.getTime()) ? "an invalid date" : value.toISOString();
  if (Array.isArray(value)) return "a list";
  return `a value of type ${typeof value}`;
}

/** The maximum time until an override ends: 365 days. */
const MAX_EXPIRY_SECONDS = 365 * 86_400;
const MIN_EXPIRY_MS = 1000;

/** The input of an override after the check. */
type CheckedOverride = {
  readonly rule: string;
  readonly expiresAt: number;
  readonly reason: string;
} & (
  | { readonly isForClient: true; readonly effect: ClientEffect }
  | { readonly isForClient: false; readonly effect: RuleEffect }
);

type OverrideCheck =
  | { readonly ok: true; readonly override: CheckedOverride }
  | { readonly ok: false; readonly faults: readonly Fault[] };

export interface CheckOptions {
  /** Whether the override is for one client. This determines the allowed effects. */
  readonly isForClient: boolean;
  /** The configuration's rules; undefined if only the deployed Worker knows them. */
  readonly rules?: readonly Rule[] | undefined;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** The fields that the caller reads itself, such as `client`. */
  readonly otherFields?: readonly string[];
}

const FIELDS = ["rule", "effect", "expiresIn", "expiresAt", "reason"] as const;

/**
 * Checks the fields `rule`, `effect`, `expiresIn` or `expiresAt`, and `reason` of an override. Reports all faults at
 * once. The messages contain no value that identifies a client.
 */
export function checkOverride(input: unknown, options: CheckOptions): OverrideCheck {
  const { isForClient, rules, now, otherFields = [] } = options;
  const allowed = [...FIELDS.slice(0, 1), ...otherFields, ...FIELDS.slice(1)];
  if (!isRecord(input)) {
    const message = `An override must be an object with the fields ${allowed.join(", ")}.`;
    return { ok: false, faults: [{ path: "", code: codeFor(input), message }] };
  }
  const faults: Fault[] = Object.keys(input)
    .filter((name) => !allowed.includes(name))
    .map((name) => ({
      path: shortened(name),
      code: "unknown-field",
      message: `must be left out: the fields are ${allowed.join(", ")}.`,
    }));
  const rule = ruleIn(input.rule, rules, faults);
  const schema = isForClient ? ClientEffectSchema : RuleEffectSchema;
  const effect = read<ClientEffect | RuleEffect>(schema, input.effect, "effect", faults);
  if (effect && "limits" in effect && rule) checkPolicies(effect.limits, rule, faults);
  const expiresAt = expiryIn(input, now, faults);
  const reason = readReason(input.reason, faults);
  if (faults.length > 0) return { ok: false, faults };
  const override = { rule: input.rule, isForClient, effect, expiresAt, reason };
  return { ok: true, override: override as CheckedOverride };
}

/**
 * Reads the reason for a change, such as the removal of an override.
 *
 * @param faults the list to which a fault is added
 * @returns the reason without blanks at its ends; undefined if it has a fault
 */
export function readReason(given: unknown, faults: Fault[], path = "reason"): string | undefined {
  return read<string>(ReasonSchema, given, path, faults);
}

/** Returns faults as one text of whole sentences. */
export function describeFaults(faults: readonly Fault[]): string {
  return faults.map(({ path, message }) => (path ? `${path} ${message}` : message)).join(" ");
}

/** Returns the code of the fault of a field that is missing, or whose value is not allowed. */
function codeFor(given: unknown): FaultCode {
  return given === undefined ? "missing" : "not-allowed";
}

function read<Output>(
  schema: v.GenericSchema<unknown, unknown>,
  given: unknown,
  path: string,
  faults: Fault[],
): Output | undefined {
  const result = v.safeParse(schema, given);
  if (result.success) return result.output as Output;
  for (const issue of result.issues) {
    const code = codeOf(issue);
    const suffix = code === "unknown-field" ? "" : `, ${notGiven(issue.input)}`;
    const message = `${issue.message}${suffix}.`;
    const keys = keysOf(issue).map((key) => shortened(String(key)));
    faults.push({ path: pathOf([path, ...keys]), code, message });
  }
  return undefined;
}

/** @returns the rule; undefined if the rules are unknown, or if there is a fault */
function ruleIn(
  name: unknown,
  rules: readonly Rule[] | undefined,
  faults: Fault[],
): Rule | undefined {
  const rule = rules?.find((each) => each.name === name);
  if (rule || (!rules && typeof name === "string" && name !== "")) return rule;
  const names = rules && listNames(rules.map((each) => each.name));
  const expected = names ? `must be the name of a rule: ${names}` : "must be the name of a rule";
  faults.push({ path: "rule", code: codeFor(name), message: `${expected}, ${notGiven(name)}.` });
  return undefined;
}

/** Checks that each limit is for a policy of the rule or of one of its tiers. */
function checkPolicies(
  limits: Readonly<Record<string, number>>,
  { windows, tiers }: Rule,
  faults: Fault[],
): void {
  const all = [...windows, ...[...(tiers?.windows.values() ?? [])].flat()];
  const policies = [...new Set(all.map(({ policy }) => policy))];
  for (const [name, limit] of Object.entries(limits)) {
    const path = pathOf(["effect", "limits", shortened(name)]);
    const own = all.filter(({ policy }) => policy === name);
    if (own.length === 0) {
      const message = `must be left out: the policies of the rule are ${listNames(policies)}.`;
      faults.push({ path, code: "unknown-field", message });
    } else if (limit > MAX_CONCURRENT && own.every(({ concurrent }) => concurrent)) {
      const message = `must be at most ${MAX_CONCURRENT}, because it limits open requests.`;
      faults.push({ path, code: "not-allowed", message });
    }
  }
}

const EXPIRES_IN =
  'must be a length of time from 1 second to 365 days, such as "2h" or a number of seconds';
const EXPIRES_AT =
  'must be a time with its zone, at least 1 second and at most 365 days from now, such as "2026-12-01T08:00:00Z"';
const ISO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:\d\d)$/;

function expiryIn(
  { expiresIn, expiresAt }: Record<string, unknown>,
  now: number,
  faults: Fault[],
): number | undefined {
  if ((expiresIn === undefined) === (expiresAt === undefined)) {
    const [given, code] =
      expiresIn === undefined ? (["neither", "missing"] as const) : (["both", "conflict"] as const);
    const message = `${EXPIRES_IN}, or expiresAt a time; there are ${given} of them.`;
    faults.push({ path: "expiresIn", code, message });
    return undefined;
  }
  if (expiresAt === undefined) {
    const seconds = durationUpTo(MAX_EXPIRY_SECONDS, expiresIn);
    if (seconds !== undefined) return now + seconds * 1000;
    const message = `${EXPIRES_IN}, ${notGiven(expiresIn)}.`;
    faults.push({ path: "expiresIn", code: codeFor(expiresIn), message });
    return undefined;
  }
  const time = timeOf(expiresAt);
  const restMs = time - now;
  if (restMs >= MIN_EXPIRY_MS && restMs <= MAX_EXPIRY_SECONDS * 1000) return time;
  const message = `${EXPIRES_AT}, ${notGiven(expiresAt)}.`;
  faults.push({ path: "expiresAt", code: codeFor(expiresAt), message });
  return undefined;
}

/** Returns milliseconds since the Unix epoch; NaN if the value is no time. */
function timeOf(given: unknown): number {
  if (given instanceof Date) return given.getTime();
  if (typeof given === "string" && ISO_TIME.test(given)) return parseIsoTime(given);
  return typeof given === "number" ? Math.floor(given) : Number.NaN;
}
