// Live overrides change what rules do without a deploy. Each has an end and a reason.

/** The maximum number of overrides of a deployment. */
export const MAX_OVERRIDES = 10_000;

/** What an override changes for one client under one rule. */
export type ClientEffect =
  /** Other limits, by the names of the policies, such as `search/1m`. Other policies keep theirs. */
  | { readonly kind: "limits"; readonly limits: Readonly<Record<string, number>> }
  /** All limits of the rule, multiplied by this factor and rounded down. */
  | { readonly kind: "factor"; readonly factor: number }
  /** The rule does not count and does not limit the client. */
  | { readonly kind: "unlimited" }
  /** The rule denies every request of the client. */
  | { readonly kind: "blocked" };

/** What an override changes for every client of one rule. At least one field is set. */
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
  /** Why the override was set, for operators. */
  readonly reason: string;
  /** Who set the override: see `Actor` in control/protocol.ts. */
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

/** Returns the id of an override: the rule, and for a client's override also its identity. */
export function overrideId({ rule, client }: Pick<Override, "rule" | "client">): string {
  return client === undefined ? rule : `${rule}:${client}`;
}

/** Changes of the overrides since a version that an isolate has. */
export interface OverrideUpdate {
  /** The number of the newest change. */
  readonly version: number;
  /** Whether `set` has all overrides, so that the isolate drops all others. */
  readonly isComplete: boolean;
  readonly set: readonly Override[];
  /** The ids of the overrides that were removed. Empty if `isComplete` is true. */
  readonly removed: readonly string[];
}
