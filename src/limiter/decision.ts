import type { Quota } from "../config/quota.ts";
import type { Rule } from "../config/rule.ts";
import { StoreError, type StoreFailure } from "../stores/store-error.ts";
import type { RuleVerdict } from "./rule-verdict.ts";

export type { Quota } from "../config/quota.ts";

/** The decision on a request. An undecided request has no quotas. */
export type Decision = Allowed | Limited | Undecided;

/** The fields of decisions with quotas. */
interface DecidedFields {
  /**
   * Whether no call to the store was needed for the enforced rules, because this isolate decided
   * from leases or from remembered denials.
   */
  readonly fromMemory?: true;
}

export interface Allowed extends DecidedFields {
  readonly outcome: "allowed";
  /**
   * One quota for each window of each enforced rule, and then of each decided rule with the mode
   * `mark`. Only the quota of a rule with the mode `mark` can be violated. Empty if this isolate
   * decided alone.
   */
  readonly quotas: readonly Quota[];
  readonly shadow: ShadowResults;
  /** The verdict of each applied rule whose cost depends on the response, for the charge. */
  readonly verdicts: readonly RuleVerdict[];
  /** The rules with the mode `mark` that could not be decided although the enforced rules could. */
  readonly undecidedMarks?: readonly RuleUndecided[];
  /** Milliseconds until later windows have granted all reserved quota; 0 if none is reserved. */
  readonly reservationDelayMs: number;
  /** The store's failure, if this isolate decided alone (`onError: "local"`). */
  readonly storeFailure?: Undecided;
}

/** A rule that a request exceeds, with the client and the cost of the request. */
export interface ExceededRule {
  readonly rule: Rule;
  /** The client's identity under the rule. */
  readonly identity: string;
  /** The quota that the request would have taken. */
  readonly cost: number;
}

export interface Limited extends DecidedFields {
  readonly outcome: "limited";
  /** One quota for each window of each enforced rule. A denial from memory may lack some quotas. */
  readonly quotas: readonly Quota[];
  readonly shadow: ShadowResults;
  /** Milliseconds until the same request may fit into every quota that denied it. */
  readonly retryAfterMs: number;
  /** The first rule that denied the request, in the order of the configuration. */
  readonly rule: Rule;
  /** The same rule, with the client and the cost. */
  readonly exceeded: ExceededRule;
  /** The store's failure, if this isolate decided alone (`onError: "local"`). */
  readonly storeFailure?: Undecided;
}

export interface Undecided {
  readonly outcome: "undecided";
  /** The store's failure; `internal` for any other error. */
  readonly cause: StoreFailure | "internal";
  /** Details for an operator. Contains no key and no secret. */
  readonly detail: string;
  /**
   * Whether the request passes. It passes if all enforced rules that apply have `onError: "open"`.
   */
  readonly open: boolean;
}

/**
 * A rule in shadow mode or with the mode `mark` that could not be decided. This does not affect the
 * enforced rules.
 */
export interface RuleUndecided {
  readonly policy: string;
  readonly cause: Undecided["cause"];
  readonly detail: string;
}

/** A quota of a rule in shadow mode that would have denied the request. */
export interface ShadowDenial extends Quota, ExceededRule {}

/** The result of a rule in shadow mode: a denial, or the reason why the rule is undecided. */
export type ShadowResult = ShadowDenial | RuleUndecided;

/**
 * The results of rules in shadow mode. An element is a promise if its rule is decided later. The
 * request does not wait for this promise.
 */
export type ShadowResults = readonly (ShadowResult | Promise<readonly ShadowResult[]>)[];

/** The decision for a request to which no enforced rule applies, without the shadow results. */
export const NO_ENFORCED_RULE = {
  outcome: "allowed",
  quotas: [],
  verdicts: [],
  reservationDelayMs: 0,
} as const;

/**
 * Turns an error into a decision, because an error in Weir must not cause a response with status
 * 500.
 *
 * The detail of an unexpected error is only its name, because its message could contain a key or a
 * secret.
 *
 * @param rules the rules that apply to the request
 */
export function toUndecided(error: unknown, rules: readonly Rule[]): Undecided {
  const open = rules.every(({ mode, onError }) => mode !== "enforce" || onError === "open");
  if (error instanceof StoreError) {
    return { outcome: "undecided", cause: error.failure, detail: error.message, open };
  }
  const detail = error instanceof Error ? error.name : typeof error;
  return { outcome: "undecided", cause: "internal", detail, open };
}
