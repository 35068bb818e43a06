import type { Rule } from "../config/rule.ts";
import { StoreError, type StoreFailure } from "../stores/store-error.ts";

/** The quota of one policy for one client, after a decision. A policy is one window of a rule. */
export interface Quota {
  /**
   * The policy's name in the RateLimit fields. It is the rule's name, with the window appended if
   * the rule has several windows, such as `search/1m`.
   */
  readonly policy: string;
  /** The quota that each window grants. */
  readonly limit: number;
  /** The length of a window, in milliseconds. */
  readonly windowMs: number;
  /** Quota left in the current window, including quota that rolled over; never below 0. */
  readonly remaining: number;
  /** Milliseconds until the current window ends; more than 0. */
  readonly resetMs: number;
  /**
   * The time at which the current window ends, in milliseconds since the Unix epoch. The store's
   * clock determines this time. After a refund, and with `clock: "edge"`, the Worker's clock
   * determines it.
   */
  readonly resetAt: number;
  /** Whether this quota denied the request. */
  readonly violated: boolean;
  /**
   * Milliseconds until the same request may fit into this quota; 0 if it fits now. A cost above the
   * capacity never fits.
   */
  readonly retryAfterMs: number;
  /**
   * Milliseconds until the start of the window whose quota covers the whole reservation; 0 if no
   * quota is reserved.
   */
  readonly reservationDelayMs: number;
}

/** The decision on a request. An undecided request has no quotas. */
export type Decision = Allowed | Limited | Undecided;

export interface Allowed {
  readonly outcome: "allowed";
  /** One quota for each window of each enforced rule; empty if this isolate decided alone. */
  readonly quotas: readonly Quota[];
  readonly shadow: ShadowResults;
  /** Milliseconds until later windows have granted all reserved quota; 0 if none is reserved. */
  readonly reservationDelayMs: number;
  /** The store's failure, if this isolate decided alone (`onError: "local"`). */
  readonly storeFailure?: Undecided;
}

export interface Limited {
  readonly outcome: "limited";
  /** One quota for each window of each enforced rule. A denial from memory may lack some quotas. */
  readonly quotas: readonly Quota[];
  readonly shadow: ShadowResults;
  /** Milliseconds until the same request may fit into every quota that denied it. */
  readonly retryAfterMs: number;
  /** The first rule that denied the request, in the order of the configuration. */
  readonly rule: Rule;
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

/** A rule in shadow mode that could not be decided. This does not affect the enforced rules. */
export interface ShadowUndecided {
  readonly policy: string;
  readonly cause: Undecided["cause"];
  readonly detail: string;
}

/**
 * The result of a rule in shadow mode: a quota that would have denied the request, or the reason
 * why the rule is undecided.
 */
export type ShadowResult = Quota | ShadowUndecided;

/**
 * The results of rules in shadow mode. An element is a promise if its rule is decided later. The
 * request does not wait for this promise.
 */
export type ShadowResults = readonly (ShadowResult | Promise<readonly ShadowResult[]>)[];

/** The decision for a request to which no enforced rule applies, without the shadow results. */
export const NO_ENFORCED_RULE = { outcome: "allowed", quotas: [], reservationDelayMs: 0 } as const;

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
  const open = rules.every(({ mode, onError }) => mode === "shadow" || onError === "open");
  if (error instanceof StoreError) {
    return { outcome: "undecided", cause: error.failure, detail: error.message, open };
  }
  const detail = error instanceof Error ? error.name : typeof error;
  return { outcome: "undecided", cause: "internal", detail, open };
}
