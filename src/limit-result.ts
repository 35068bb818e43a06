import type { Decision, Quota, Undecided } from "./limiter/decision.ts";
import { RateLimitError } from "./rate-limit-error.ts";

/** The quota was taken, or would be (`check`). */
export interface LimitGranted {
  readonly ok: true;
  /**
   * Milliseconds until later windows have granted the reserved quota: wait this long. Missing if no
   * quota was reserved.
   */
  readonly retryAfterMs?: number;
  /** One for each window of the rule; none for a rule in shadow mode. */
  readonly quotas: readonly Quota[];
  readonly undecided?: undefined;
}

/** The rule has not enough quota left. None was taken. */
export interface LimitDenied {
  readonly ok: false;
  /**
   * Milliseconds to wait before the same call is made again. Other calls may use the quota first, and a
   * cost above the limit is always denied.
   */
  readonly retryAfterMs: number;
  /** One for each window of the rule. A denial from memory may lack some windows. */
  readonly quotas: readonly Quota[];
  readonly undecided?: undefined;
}

/** The store could not decide, so the rule's `onError` did. There are no figures. */
export interface LimitUndecided {
  /**
   * `onError: "open"`: true. `"closed"`: false. `"local"`: as this isolate decided by its own counters.
   * A rule in shadow mode: true.
   */
  readonly ok: boolean;
  /** The cause. The line `{"weir":"undecided"}` in the log has the details. */
  readonly undecided: Undecided["cause"];
  readonly retryAfterMs?: undefined;
  readonly quotas?: undefined;
}

/** The result of `limit` and `check`. */
export type LimitResult = LimitGranted | LimitDenied | LimitUndecided;

/**
 * Turns a decision by one rule into the result of a call.
 *
 * @param throws whether to throw an error instead of returning `ok: false`
 * @throws {RateLimitError} with `throws`, if the client is over the limit
 * @throws {Error} with `throws`, if the rule is undecided and does not let calls pass
 */
export function toLimitResult(decision: Decision, rule: string, throws: boolean): LimitResult {
  switch (decision.outcome) {
    case "allowed": {
      const { storeFailure, quotas, reservationDelayMs } = decision;
      if (storeFailure) return { ok: true, undecided: storeFailure.cause };
      if (reservationDelayMs === 0) return { ok: true, quotas };
      return { ok: true, retryAfterMs: reservationDelayMs, quotas };
    }
    case "limited": {
      const { storeFailure, quotas, retryAfterMs } = decision;
      if (throws) throw new RateLimitError(rule, retryAfterMs);
      if (storeFailure) return { ok: false, undecided: storeFailure.cause };
      return { ok: false, retryAfterMs, quotas };
    }
    case "undecided": {
      const { cause, open } = decision;
      if (throws && !open) throw new Error(`The rule "${rule}" could not be decided: ${cause}.`);
      return { ok: open, undecided: cause };
    }
    default:
      return decision satisfies never;
  }
}
