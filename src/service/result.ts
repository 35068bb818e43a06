import { RpcTarget } from "cloudflare:workers";
import type { Reserve } from "../limiter/counters.ts";
import {
  type Decision,
  EXCEEDS_LIMIT,
  isViolated,
  type Quota,
  type Undecided,
} from "../limiter/decision.ts";
import type { HeldSlots } from "../limiter/held-slots.ts";

/**
 * Matches the message of the error, from which `RateLimitError.from` reads the fields. If reservations of a very
 * small limit last long, JavaScript writes their time with an exponent, such as 3e+24.
 */
const MESSAGE =
  /^(?:RateLimitError: )?The rule "([a-z0-9_-]+)" (?:can never admit this cost|is over its limit for another (\d+(?:\.\d+)?(?:e\+\d+)?) ms)\.$/;

/**
 * Thrown by the methods of `WeirService` with the option `throws`, if a client is over the limit.
 *
 * An error loses its class over a service binding. So in the calling Worker, `RateLimitError.from` recognizes it, but
 * `instanceof` does not.
 */
export class RateLimitError extends Error {
  override readonly name = "RateLimitError";
  /** The name of the rule that denied the call. */
  readonly rule: string;
  /**
   * The time in milliseconds after which the caller can make the same call again; a whole number. Undefined if the
   * error has a `reason`.
   */
  readonly retryAfterMs: number | undefined;
  /** Set if the call can never pass, because its cost is above what a limit can ever grant. */
  readonly reason: "exceeds-limit" | undefined;

  /** @param retryAfterMs the wait in milliseconds, rounded up to a whole number; undefined if the call can never pass */
  constructor(rule: string, retryAfterMs: number | undefined) {
    const wholeMs = retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs);
    const state =
      wholeMs === undefined
        ? "can never admit this cost"
        : `is over its limit for another ${wholeMs} ms`;
    super(`The rule "${rule}" ${state}.`);
    this.rule = rule;
    this.retryAfterMs = wholeMs;
    this.reason = wholeMs === undefined ? EXCEEDS_LIMIT : undefined;
  }

  /**
   * Recognizes the error, also after it has crossed a service binding.
   *
   * Reads the fields from the error's message. RPC transfers the fields of an error only with the compatibility flag
   * `enhanced_error_serialization`, which older compatibility dates do not include.
   *
   * @example
   * catch (error) {
   *   const limited = RateLimitError.from(error);
   *   if (!limited) throw error;
   *   if (limited.retryAfterMs === undefined) return tooExpensive();
   *   return queueFor(limited.retryAfterMs);
   * }
   *
   * @returns undefined if the error is not a `RateLimitError`
   */
  static from(error: unknown): RateLimitError | undefined {
    if (error instanceof RateLimitError) return error;
    const [, rule, retryAfterMs] = MESSAGE.exec(error instanceof Error ? error.message : "") ?? [];
    if (rule === undefined) return undefined;
    return new RateLimitError(rule, retryAfterMs === undefined ? undefined : Number(retryAfterMs));
  }
}

/**
 * The slot that a call of `limit` holds under a rule with `concurrent`. Release it when the work has ended. A slot that
 * the caller forgets expires after the rule's `maxDuration`.
 *
 * @example
 * const { ok, slot } = await env.LIMITS.limit("renders", { key: account });
 * if (ok) await render().finally(() => slot?.release());
 */
export class CallSlot extends RpcTarget {
  readonly #slots: HeldSlots;

  constructor(slots: HeldSlots) {
    super();
    this.#slots = slots;
    slots.keep();
  }

  /** Gives the slot back. A second call does nothing. */
  release(): void {
    this.#slots.release();
  }
}

/** The result if the call may go on. `limit` has usually taken the quota; `check` has only found it available. */
export interface LimitGranted {
  /** Always true: the call may go on. */
  readonly ok: true;
  /**
   * The time in milliseconds until the window whose quota covers the whole reservation begins. The caller should wait
   * so long. Missing if no quota was reserved.
   */
  readonly retryAfterMs?: number;
  /**
   * The policies whose quota the call exceeds. Present only for a rule with `mode: "mark"` that has too little quota
   * left. No quota was then taken.
   *
   * @example ["plan"]
   */
  readonly over?: readonly string[];
  /**
   * One quota for each window of the rule. Empty for a rule in shadow mode, if rules are off, and if `settle` had
   * nothing to charge or to give back.
   */
  readonly quotas: readonly Quota[];
  /**
   * The charge of `limit`. Present if the rule's `cost` has a `reserve`. Pass it to `settle` when the used quota is
   * known.
   */
  readonly reserved?: Reserve;
  /** Present if the rule has `concurrent`, after `limit`. Release it when the work has ended. */
  readonly slot?: CallSlot;
  /**
   * True if `settle` charged only an excess and gave nothing back, because a deploy has replaced the counters since
   * `limit` charged the reserve.
   */
  readonly reserveEnded?: true;
  /** Always undefined, because the call may go on. */
  readonly reason?: undefined;
  /** Always undefined, because the store has decided. */
  readonly undecided?: undefined;
}

/** The fields of every denial. */
interface DenialFields {
  /** Always false: the call must not go on. */
  readonly ok: false;
  /** One quota for each window of the rule. A denial from memory may lack some quotas. */
  readonly quotas: readonly Quota[];
  /** Always undefined, because a rule with `mode: "mark"` denies no call. */
  readonly over?: undefined;
  /** Always undefined, because nothing was charged. */
  readonly reserved?: undefined;
  /** Always undefined, because no slot was taken. */
  readonly slot?: undefined;
  /** Always undefined, because `settle` denies no call. */
  readonly reserveEnded?: undefined;
  /** Always undefined, because the store has decided. */
  readonly undecided?: undefined;
}

/** The result if the client has too little quota left. No quota was taken. */
export interface LimitDenied extends DenialFields {
  /**
   * The time in milliseconds that the caller should wait before it makes the same call again. Other calls may use the
   * quota in the meantime.
   */
  readonly retryAfterMs: number;
  /** Always undefined, because a later call may pass. */
  readonly reason?: undefined;
}

/** The result if the call can never pass, whatever quota is left. No quota was taken. */
export interface LimitNeverGranted extends DenialFields {
  /**
   * The cost is above the limit: above the `capacity` if it is set, with `maxReserved` if the call may reserve quota, and
   * above the share of a shard under a rule with `shards`. Every cost is above a limit of 0.
   */
  readonly reason: "exceeds-limit";
  /** Always undefined, because no later call with this cost can pass. */
  readonly retryAfterMs?: undefined;
}

/** The result if the store could not decide. This result has no quotas. */
export interface LimitUndecided {
  /**
   * True with `onError: "open"`, and for a rule in shadow mode or with the mode `mark`. False with `onError: "closed"`.
   * With `onError: "local"`, this isolate's own counters decide.
   */
  readonly ok: boolean;
  /**
   * The reason why the store could not decide, such as `"timeout"`. The log line `{"weir":"undecided"}` has the
   * details.
   */
  readonly undecided: Undecided["cause"];
  /** Always undefined, because the time until quota is available is unknown. */
  readonly retryAfterMs?: undefined;
  /** Set if this isolate has decided alone (`onError: "local"`), and the cost is above the limit of the rule. */
  readonly reason?: "exceeds-limit";
  /** Always undefined, because the quotas are unknown. */
  readonly quotas?: undefined;
  /** Always undefined, because the quotas are unknown. */
  readonly over?: undefined;
  /** Always undefined, because the store has charged nothing that a program could settle. */
  readonly reserved?: undefined;
  /** Present if this isolate has decided alone (`onError: "local"`), under a rule with `concurrent`. */
  readonly slot?: CallSlot;
  /** True if `settle` could not charge an excess, and a deploy has replaced the counters since. */
  readonly reserveEnded?: true;
}

/**
 * The result of `limit` and `check`. Read `ok` to learn whether the call may go on.
 *
 * @example
 * const { ok, undecided } = await env.LIMITS.limit("reports", { key: account });
 * if (!ok) return new Response(null, { status: undecided ? 503 : 429 });
 */
export type LimitResult = LimitGranted | LimitDenied | LimitNeverGranted | LimitUndecided;

/**
 * Turns a decision by one rule into the result of a call.
 *
 * @param throws whether to throw an error instead of returning `ok: false`
 * @throws {RateLimitError} if `throws` is set and the client is over the limit
 * @throws {Error} if `throws` is set, the rule is undecided, and its `onError` lets no call pass
 */
export function toLimitResult(decision: Decision, rule: string, throws: boolean): LimitResult {
  switch (decision.outcome) {
    case "allowed": {
      const { storeFailure, quotas, reservationDelayMs } = decision;
      if (storeFailure) return { ok: true, undecided: storeFailure.cause };
      const violated = quotas.filter(isViolated).map(({ policy }) => policy);
      const over = violated.length > 0 && { over: violated };
      if (reservationDelayMs === 0) return { ok: true, ...over, quotas };
      return { ok: true, retryAfterMs: reservationDelayMs, ...over, quotas };
    }
    case "limited": {
      const { storeFailure, quotas, retryAfterMs } = decision;
      if (throws) throw new RateLimitError(rule, retryAfterMs);
      const time = retryAfterMs === undefined ? { reason: EXCEEDS_LIMIT } : { retryAfterMs };
      if (!storeFailure) return { ok: false, ...time, quotas };
      const reason = time.reason && { reason: time.reason };
      return { ok: false, undecided: storeFailure.cause, ...reason };
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
