import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { Counter } from "../engine/counter.ts";
import type { AppliedRule } from "../request/applied-rule.ts";
import { createMemoryStore } from "../stores/memory-store.ts";
import type { Answer } from "../stores/store.ts";
import { StoreError } from "../stores/store-error.ts";
import { countersOf, type DecideOptions, type RuleCounter } from "./counters.ts";
import { type Allowed, type Limited, NO_ENFORCED_RULE, type Undecided } from "./decision.ts";
import { localCountersOf } from "./local-counters.ts";
import {
  createNativeGuard,
  NATIVE_PERIOD_MS,
  type NativeLimiter,
  nativeTimeoutMs,
} from "./native-limiter.ts";
import { quotasOf } from "./quotas.ts";
import { inWindowsOf } from "./reserves.ts";
import type { ResponseCharge } from "./response-charges.ts";
import { type RuleVerdict, verdictsOf } from "./rule-verdict.ts";
import { exceededRuleOf } from "./store-verdict.ts";

/**
 * Decides requests in this isolate while the store is unavailable, for rules with
 * `onError: "local"`.
 */
export interface Fallback {
  /**
   * Whether this isolate decides a request if the store fails and these rules apply to the request.
   */
  covers(rules: readonly Rule[]): boolean;

  /**
   * Returns the part of a decision's deadline that is reserved for the native limiter, in
   * milliseconds; 0 if the native limiter cannot be called. The native limiter is called after the
   * store has failed.
   */
  reservedMs(appliedRules: readonly AppliedRule[]): number;

  /**
   * Decides a request by counters in this isolate's memory, after the store has failed. Never
   * rejects.
   */
  decide(
    appliedRules: readonly AppliedRule[],
    failure: Undecided,
    options?: DecideOptions,
  ): Promise<Allowed | Limited | Undecided>;

  /**
   * Makes the charges for a response in this isolate, if its memory has space for the counters.
   * Never rejects.
   */
  charge(charges: readonly ResponseCharge[]): Promise<void>;
}

/**
 * Creates a limiter that counts in this isolate only.
 *
 * Cloudflare runs many isolates, and each of them counts alone. Each isolate admits a share of the
 * limit (`localShare`). If n isolates receive requests of a client, they admit up to n times this
 * share in total. A native limiter reduces this total, because it counts the requests of a whole
 * location.
 */
export function createFallback(
  { prefix, timeoutMs }: Pick<Config, "prefix" | "timeoutMs">,
  nativeLimiter?: NativeLimiter,
): Fallback {
  const store = createMemoryStore();
  const isWithinNativeLimit = createNativeGuard(nativeLimiter, timeoutMs);

  return {
    covers,

    reservedMs(appliedRules) {
      const isCallable = nativeLimiter && covers(appliedRules.map(({ rule }) => rule));
      return isCallable ? nativeTimeoutMs(timeoutMs) : 0;
    },

    async decide(appliedRules, failure, options) {
      const localRules = appliedRules.filter(isCountedLocally);
      const ruleCounters = localRules.flatMap((each) => localCountersOf(each, prefix, options));
      try {
        const now = Date.now();
        const [answered] = store.decide([countersOf(ruleCounters)], now);
        const answer = (await answered) as Answer;
        const quotas = quotasOf(ruleCounters, answer);
        const deniedBy = ruleCounters.find((_, index) => quotas[index]?.violated);
        if (deniedBy) {
          const retryAfterMs = Math.max(...quotas.map((quota) => quota.retryAfterMs));
          return limited(deniedBy, quotas, retryAfterMs, failure);
        }
        // A check must take no quota, but each call to the native limiter takes some.
        if (options?.checkOnly) return allowed(failure);
        const isWithin = await Promise.all(localRules.map(isWithinNativeLimit));
        const deniedRule = localRules[isWithin.indexOf(false)];
        const denier = ruleCounters.find(({ appliedRule }) => appliedRule === deniedRule);
        if (!denier) return allowed(failure, verdictsOf(ruleCounters, answer));
        await store.adjust(ruleCounters.filter(isCharged).map(refundOf), now);
        const violated = quotas.map((quota, index) =>
          ruleCounters[index]?.rule.name === denier.rule.name
            ? { ...quota, violated: true, remaining: 0 }
            : quota,
        );
        return limited(denier, violated, NATIVE_PERIOD_MS, failure);
      } catch (error) {
        // Most likely the memory is full. A request that is not counted must not pass. So it is
        // answered as with `onError: "closed"`.
        const cause = error instanceof StoreError ? error.failure : "internal";
        return { ...failure, cause, detail: "this isolate cannot count either", open: false };
      }
    },

    async charge(charges) {
      const ruleCounters = charges
        .filter(({ verdict }) => isCountedLocally(verdict.appliedRule))
        .flatMap(({ verdict: { appliedRule, reserve }, cost }) => {
          const local = localCountersOf(appliedRule, prefix, { cost });
          return reserve && cost < 0 ? inWindowsOf(reserve, local) : local;
        });
      if (ruleCounters.length === 0) return;
      // If the memory is full, this call fails. The next decision then fails too, and denies its
      // request.
      await store.adjust(countersOf(ruleCounters), Date.now()).catch(() => {});
    },
  };
}

function covers(rules: readonly Rule[]): boolean {
  const enforced = rules.filter(({ mode }) => mode === "enforce");
  const isClosed = enforced.some(({ onError }) => onError === "closed");
  return !isClosed && enforced.some(({ onError }) => onError === "local");
}

function allowed(storeFailure: Undecided, verdicts: readonly RuleVerdict[] = []): Allowed {
  return { ...NO_ENFORCED_RULE, shadow: [], verdicts, storeFailure };
}

function limited(
  denier: RuleCounter,
  quotas: Limited["quotas"],
  retryAfterMs: number,
  storeFailure: Undecided,
): Limited {
  const { rule } = denier;
  const exceeded = exceededRuleOf(denier);
  return { outcome: "limited", quotas, shadow: [], retryAfterMs, rule, exceeded, storeFailure };
}

function isCountedLocally({ rule }: AppliedRule): boolean {
  return rule.mode === "enforce" && rule.onError === "local";
}

function isCharged({ counter }: RuleCounter): boolean {
  return !counter.checkOnly;
}

/** Returns the counter with its cost negated, so that `adjust` takes the charge back. */
function refundOf({ counter }: RuleCounter): Counter {
  return { ...counter, cost: -counter.cost };
}
