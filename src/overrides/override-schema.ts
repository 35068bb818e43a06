import * as v from "valibot";
import { MAX_LIMIT } from "../config/limits.ts";
import { MAX_FACTOR } from "./override-windows.ts";

// The schema of the fields that operators write. Unlike the messages about a configuration, these messages
// are in the bundle of a deployed Worker, because operators use the Worker that is deployed. Each message
// continues a sentence that begins with the name of the field.

/** The maximum length of a reason in characters. */
export const MAX_REASON = 500;

const Limit = v.custom<number>(
  (value) => Number.isInteger(value) && Number(value) >= 0 && Number(value) <= MAX_LIMIT,
  `must be a whole number from 0 to ${MAX_LIMIT}`,
);

const Factor = v.custom<number>(
  (value) => typeof value === "number" && value >= 0 && value <= MAX_FACTOR,
  `must be a number from 0 to ${MAX_FACTOR}`,
);

/** The reason for a change. The output has no blanks at its ends. */
export const ReasonSchema = v.pipe(
  v.custom<string>(isReason, `must be a text of 1 to ${MAX_REASON} characters`),
  v.transform((reason) => reason.trim()),
);

function isReason(value: unknown): boolean {
  if (typeof value !== "string") return false;
  const { length } = value.trim();
  return length >= 1 && length <= MAX_REASON;
}

const CLIENT_EFFECT =
  'must be, for a client, { kind: "limits", limits }, { kind: "factor", factor }, { kind: "unlimited" } or { kind: "blocked" }';
const RULE_EFFECT =
  'must be, for a rule, { mode: "enforce" }, { mode: "shadow" }, { mode: "off" }, { factor }, or a mode and a factor';
const LIMITS = 'must be an object of limits by policy, such as { "api/1m": 500 }';

/** Returns the schema of an object without other fields. @param expected the message about other values */
function objectOf<const Entries extends v.ObjectEntries>(entries: Entries, expected: string) {
  return v.strictObject(entries, (issue) => {
    if (issue.expected === "never") {
      return `must be left out: the fields are ${Object.keys(entries).join(", ")}`;
    }
    const missing = entries[String(issue.path?.at(-1)?.key)];
    return missing && "message" in missing ? String(missing.message) : expected;
  });
}

/** The effect of an override for one client. */
export const ClientEffectSchema = v.variant(
  "kind",
  [
    objectOf(
      {
        kind: v.literal("limits"),
        limits: v.pipe(
          v.record(v.string(), Limit, LIMITS),
          v.check((limits) => Object.keys(limits).length > 0, LIMITS),
        ),
      },
      LIMITS,
    ),
    objectOf({ kind: v.literal("factor"), factor: Factor }, CLIENT_EFFECT),
    objectOf({ kind: v.literal("unlimited") }, CLIENT_EFFECT),
    objectOf({ kind: v.literal("blocked") }, CLIENT_EFFECT),
  ],
  ({ path }) => (path ? 'must be "limits", "factor", "unlimited" or "blocked"' : CLIENT_EFFECT),
);

/** The effect of an override for all clients of a rule. */
export const RuleEffectSchema = v.pipe(
  objectOf(
    {
      mode: v.optional(
        v.picklist(["enforce", "shadow", "off"], 'must be "enforce", "shadow" or "off"'),
      ),
      factor: v.optional(Factor),
    },
    RULE_EFFECT,
  ),
  v.check(({ mode, factor }) => mode !== undefined || factor !== undefined, RULE_EFFECT),
  v.transform(({ mode, factor }) => ({
    ...(mode !== undefined && { mode }),
    ...(factor !== undefined && { factor }),
  })),
);
