import * as v from "valibot";
import type { Window } from "../config/rule.ts";
import { MAX_CONCURRENT, MAX_LIMIT } from "../config/window.ts";

/** The largest factor of an override. */
export const MAX_FACTOR = 1000;

/**
 * Returns the windows with all limits multiplied by a factor and rounded down. A limit of 1 or more stays at least 1,
 * so that a small factor never closes a rule by accident. A factor of 0 makes all limits 0, so that every request
 * with a cost is denied.
 */
export function scaledWindows(windows: readonly Window[], factor: number): readonly Window[] {
  return windows.map((window) => {
    const least = factor > 0 && window.limit > 0 ? 1 : 0;
    return withLimit(window, Math.max(least, scaled(window.limit, factor)));
  });
}

/**
 * Returns the windows with other limits.
 *
 * @param limits the limits, by the names of their policies
 * @param declared the same windows without the client's own numbers
 */
export function limitedWindows(
  windows: readonly Window[],
  limits: Readonly<Record<string, number>>,
  declared = windows,
): readonly Window[] {
  return windows.map((window, at) => {
    const limit = Object.hasOwn(limits, window.policy) ? limits[window.policy] : undefined;
    if (limit === undefined) return window;
    // With a number of 0, the window does not show whether quota rolls over.
    return withLimit((window.limit === 0 && declared[at]) || window, limit);
  });
}

/** Returns the windows without any quota. */
export function emptyWindows(windows: readonly Window[]): readonly Window[] {
  return windows.map((window) => withLimit(window, 0));
}

/**
 * Returns a window with another limit. `capacity` and `maxReserved` change in the same proportion.
 *
 * Unless the limit is 0, a window whose quota rolls over or can be reserved keeps this property. Otherwise the window
 * would have another counter in the store, without the quota that the client has used.
 */
function withLimit(window: Window, given: number): Window {
  if (given === 0) {
    const { rollsOver: _, ...fields } = window;
    return { ...fields, limit: 0, capacity: 0, maxReserved: 0 };
  }
  const { capacity, maxReserved } = window;
  const rollsOver = capacity > window.limit;
  const max = window.concurrent ? MAX_CONCURRENT : MAX_LIMIT;
  const limit = Math.min(given, rollsOver ? max - 1 : max);
  const factor = window.limit === 0 ? 1 : limit / window.limit;
  return {
    ...window,
    limit,
    capacity: rollsOver ? Math.max(limit + 1, scaled(capacity, factor)) : limit,
    maxReserved: maxReserved > 0 ? Math.max(1, scaled(maxReserved, factor)) : 0,
  };
}

/**
 * Multiplies a quota, and rounds it down. Removes floating-point errors first, so that 100 × 0.29 is 29 instead of
 * 28.
 */
function scaled(quota: number, factor: number): number {
  return Math.min(MAX_LIMIT, Math.floor(Number((quota * factor).toPrecision(15))));
}

// Live overrides change rules without a deploy. Each override has an end and a reason.

/** The maximum number of overrides of a deployment. After a change, every isolate loads all of them. */
export const MAX_OVERRIDES = 1000;

/** The effect of an override on one client under one rule. */
export type ClientEffect =
  /** Other limits, by the names of the policies, such as `search/1m`. Other policies keep their limits. */
  | { readonly kind: "limits"; readonly limits: Readonly<Record<string, number>> }
  /** All limits of the rule, multiplied by this factor and rounded down. */
  | { readonly kind: "factor"; readonly factor: number }
  /** The rule does not count and does not limit the client. */
  | { readonly kind: "unlimited" }
  /** The rule denies every request of the client. */
  | { readonly kind: "blocked" };

/** The effect of an override on all clients of one rule. At least one field is set. */
export interface RuleEffect {
  /** The mode of the rule; `off`: the rule does not apply. */
  readonly mode?: "enforce" | "shadow" | "off";
  /** All limits of the rule, multiplied by this factor and rounded down. */
  readonly factor?: number;
}

/** The fields that all overrides have. */
interface OverrideFields {
  /** The name of the rule. */
  readonly rule: string;
  /** When the override ends, in milliseconds since the Unix epoch. */
  readonly expiresAt: number;
  /** The reason for the override, for operators. */
  readonly reason: string;
  /** The author of the override: see `Actor` in control/protocol.ts. */
  readonly by: string;
  /** When the override was set, in milliseconds since the Unix epoch. */
  readonly setAt: number;
}

/** An override for one client. A client's override wins over the override of its rule. */
export interface ClientOverride extends OverrideFields {
  /** The client's identity under the rule: a hash of 22 characters, see request/identity.ts. */
  readonly client: string;
  readonly effect: ClientEffect;
}

/** An override for all clients of a rule. */
export interface RuleOverride extends OverrideFields {
  readonly client?: undefined;
  readonly effect: RuleEffect;
}

/** A rule, and each client under a rule, has at most one override. */
export type Override = ClientOverride | RuleOverride;

/** Returns the id of an override: the rule, and also the identity for a client's override. */
export function overrideId({ rule, client }: Pick<Override, "rule" | "client">): string {
  return client === undefined ? rule : `${rule}:${client}`;
}

/** All overrides that have not ended. */
export interface OverrideUpdate {
  /** The number of the newest change. */
  readonly version: number;
  readonly all: readonly Override[];
}

// The schema of the fields that operators write. The bundle of a deployed Worker contains these messages, unlike
// messages about a configuration, because operators use the deployed Worker. Each message continues a sentence that
// begins with the name of the field.

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

/** Returns the schema of an object with only these fields. @param expected the message about a faulty object */
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
