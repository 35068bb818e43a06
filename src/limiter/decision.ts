import type { Rule } from "../config/rule.ts";
import type { StoreFailure } from "../stores/store-error.ts";

/** One policy of one client, after a decision. */
export interface Quota {
  /** The policy's name in the RateLimit fields: the rule's, or `search/1m`. */
  readonly policy: string;
  /** Quota of a window. */
  readonly limit: number;
  readonly windowMs: number;
  /** What is left to be used in the current window, what rolled over included; never below 0. */
  readonly remaining: number;
  /** Milliseconds until the current window ends, more than 0. */
  readonly resetMs: number;
  /** When that is, in milliseconds since the Unix epoch, by the clock that decided. */
  readonly resetAt: number;
  /** Whether this quota had no room for the request. */
  readonly violated: boolean;
  /** Milliseconds until there will be room for such a request, where there was none. */
  readonly retryAfterMs: number;
  /** Milliseconds until windows to come have granted what was reserved of them; 0 when nothing was. */
  readonly reservationDelayMs: number;
}

/** What became of a request. Only a decided one has figures. */
export type Decision = Allowed | Limited | Undecided;

export interface Allowed {
  readonly outcome: "allowed";
  readonly quotas: readonly Quota[];
  readonly shadow: ShadowResults;
  /** Milliseconds until all that was reserved is honoured; 0 when nothing was. */
  readonly reservationDelayMs: number;
  /** Why this isolate decided alone (`onError: "local"`), if it did. Then there are no quotas. */
  readonly local?: Undecided;
}

export interface Limited {
  readonly outcome: "limited";
  readonly quotas: readonly Quota[];
  readonly shadow: ShadowResults;
  /** Until every quota that had no room has some again, in milliseconds. */
  readonly retryAfterMs: number;
  /** The first rule, in the order of the rules, that had no room. */
  readonly rule: Rule;
  /** Why this isolate decided alone (`onError: "local"`), if it did. */
  readonly local?: Undecided;
}

export interface Undecided {
  readonly outcome: "undecided";
  /** Why: the store's failure, or a fault of Weir's own. */
  readonly cause: StoreFailure | "internal";
  /** What is known of it, for an operator. Holds no key and no secret. */
  readonly detail: string;
  /** Whether every rule that matched lets undecided requests pass. */
  readonly open: boolean;
}

/** A rule in shadow mode that could not be decided. Enforced rules do not notice. */
export interface ShadowUndecided {
  readonly policy: string;
  readonly cause: Undecided["cause"];
  readonly detail: string;
}

/** A quota of a rule in shadow mode that would have denied the request, or a rule that is undecided. */
export type ShadowResult = Quota | ShadowUndecided;

/** What rules in shadow mode would have done; a promise where no request waits for them. */
export type ShadowResults = readonly (ShadowResult | Promise<readonly ShadowResult[]>)[];
