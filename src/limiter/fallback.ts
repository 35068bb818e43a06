import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { withCost } from "../engine/counter.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { inTime } from "../stores/deadline.ts";
import { createMemoryStore } from "../stores/memory-store.ts";
import { type Answer, StoreError } from "../stores/store.ts";
import type { ResponseCharge } from "./cost.ts";
import {
  countersOf,
  type DecideOptions,
  inWindowsOf,
  quotaCounters,
  type RuleCounter,
  ruleCountersOf,
} from "./counters.ts";
import {
  type Allowed,
  decisionOf,
  type Limited,
  NO_ENFORCED_RULE,
  type RuleVerdict,
  type Undecided,
} from "./decision.ts";
import type { HeldSlots } from "./held-slots.ts";

/** Returns the counters of a request in this isolate. A rule with shards has one counter in place of its shards. */
function localCountersOf(
  appliedRule: AppliedRule,
  prefix: string,
  options?: DecideOptions,
): RuleCounter[] {
  const unsharded = { ...appliedRule, rule: { ...appliedRule.rule, shards: 1 } };
  return ruleCountersOf(unsharded, prefix, options).map((ruleCounter) => ({
    ...localCounterOf(ruleCounter),
    appliedRule,
  }));
}

/**
 * Returns the counter with this isolate's share of the limit. No quota is reserved or rolls over, because the
 * capacity is also this share. A counter with rollover still has `rollsOver`, to differ from the counter of a tier
 * without rollover.
 */
function localCounterOf(ruleCounter: RuleCounter): RuleCounter {
  const { counter, window, rule } = ruleCounter;
  // The share is at least 1 (unless the limit is 0). A request whose cost fits into the whole limit also fits into
  // the share.
  const share = Math.max(
    localQuota(window.limit, rule.localShare),
    Math.min(counter.cost, window.limit),
  );
  return { ...ruleCounter, capacity: share, counter: { ...counter, limit: share, ceiling: share } };
}

/**
 * Returns a share of a limit, rounded up. Removes floating-point errors first, so that 100 × 0.07 is 7 instead of 8.
 */
function localQuota(limit: number, share: number): number {
  return Math.ceil(Number((limit * share).toPrecision(15)));
}

/** Cloudflare's rate limiting binding. The binding counts per location, and only approximately. */
export type NativeLimiter = Pick<RateLimit, "limit">;

/** The longest period of Cloudflare's limiter, in milliseconds. After this time, the limiter has quota again. */
const NATIVE_PERIOD_MS = 60_000;

/**
 * Returns how long a decision waits for the native limiter, in milliseconds. The wait is short, because the native
 * limiter probably runs on the same machine. The native limiter and the store share the deadline.
 */
function nativeTimeoutMs(timeoutMs: number): number {
  return Math.min(20, timeoutMs / 2);
}

/** The time in milliseconds for which Weir does not call the native limiter after a timeout. */
const PAUSE_MS = 1000;

/**
 * Creates a function that asks the native limiter whether a client may pass. Without a native limiter, or if it fails
 * or times out, the isolate's own counters decide alone.
 */
function createNativeGuard(
  nativeLimiter: NativeLimiter | undefined,
  timeoutMs: number,
): (appliedRule: AppliedRule) => Promise<boolean> {
  let pausedUntil = 0;

  return async function isWithinNativeLimit({ rule, identity }) {
    const now = Date.now();
    // If more than PAUSE_MS is left, the clock was set back, and the pause counts as ended.
    const isPaused = now < pausedUntil && pausedUntil - now <= PAUSE_MS;
    if (!nativeLimiter || isPaused) return true;
    try {
      const call = () => nativeLimiter.limit({ key: `${rule.name}:${identity}` });
      const { success } = await inTime(call, nativeTimeoutMs(timeoutMs));
      return success !== false;
    } catch (error) {
      if (error instanceof StoreError && !error.wasBusy) pausedUntil = Date.now() + PAUSE_MS;
      return true;
    }
  };
}

/** Decides requests in this isolate while the store is unavailable, for rules with `onError: "local"`. */
export interface Fallback {
  /** Whether this isolate decides a request with these rules if the store fails. */
  covers(rules: readonly Rule[]): boolean;

  /** Returns the part of a decision's deadline that is reserved for the native limiter, in milliseconds. */
  reservedMs(appliedRules: readonly AppliedRule[]): number;

  /** Decides a request by counters in this isolate's memory. Never rejects. */
  decideLocally(
    appliedRules: readonly AppliedRule[],
    failure: Undecided,
    options: DecideOptions | undefined,
    slots: HeldSlots,
  ): Promise<Allowed | Limited | Undecided>;

  /** Makes the charges for a response in this isolate. Never rejects. */
  charge(charges: readonly ResponseCharge[]): Promise<void>;
}

/**
 * Creates a limiter that counts in this isolate only.
 *
 * Each of Cloudflare's many isolates counts alone, and admits a share of the limit (`localShare`). So n isolates
 * together admit up to n times this share. A native limiter reduces this total, because it counts the requests of a
 * whole location.
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

    async decideLocally(appliedRules, failure, options, slots) {
      const localRules = appliedRules.filter(isCountedLocally);
      const ruleCounters = localRules.flatMap((each) => localCountersOf(each, prefix, options));
      try {
        const now = Date.now();
        const group = countersOf(ruleCounters);
        const [answered] = store.decide([group], now) as [Promise<Answer>];
        slots.add(store, group, answered);
        const answer = await answered;
        const decision = decisionOf({ ...answer, fromMemory: false }, ruleCounters);
        if (decision.outcome === "limited") return { ...decision, storeFailure: failure };
        // A check must take no quota, but a call to the native limiter takes quota.
        if (options?.checkOnly) return allowed(failure);
        const { verdicts } = decision;
        const isWithin = await Promise.all(localRules.map(isWithinNativeLimit));
        const denying = verdicts[isWithin.indexOf(false)];
        if (!denying) return allowed(failure, verdicts);
        const refunds = ruleCounters.filter(({ counter }) => !counter.checkOnly);
        await store.adjust(
          countersOf(refunds).map((counter) => withCost(counter, -counter.cost)),
          now,
        );
        return limitedBy(denying, verdicts, failure);
      } catch (error) {
        // Probably the memory is full. A request that is not counted must not pass, so it is answered as with
        // `onError: "closed"`.
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
      const counters = countersOf(quotaCounters(ruleCounters));
      if (counters.length === 0) return;
      // This call fails if the memory is full. The next decision then fails too, and denies its request.
      await store.adjust(counters, Date.now()).catch(() => {});
    },
  };
}

function covers(rules: readonly Rule[]): boolean {
  const enforced = rules.filter(({ mode }) => mode === "enforce");
  const isClosed = enforced.some(({ onError }) => onError === "closed");
  return !isClosed && enforced.some(({ onError }) => onError === "local");
}

function allowed(storeFailure: Undecided, verdicts: readonly RuleVerdict[] = []): Allowed {
  return { ...NO_ENFORCED_RULE, verdicts, storeFailure };
}

/** Returns the denial by the native limiter. This limiter does not say when it has quota again. */
function limitedBy(
  denying: RuleVerdict,
  verdicts: readonly RuleVerdict[],
  storeFailure: Undecided,
): Limited {
  const exceeded = denying.quotas.map((quota) => ({ ...quota, violated: true, remaining: 0 }));
  const deniedBy: RuleVerdict = { ...denying, says: "denied", quotas: exceeded };
  const all = verdicts.map((each) => (each === denying ? deniedBy : each));
  const quotas = all.flatMap((each) => each.quotas);
  const retryAfterMs = NATIVE_PERIOD_MS;
  return { outcome: "limited", quotas, verdicts: all, retryAfterMs, deniedBy, storeFailure };
}

function isCountedLocally({ rule }: AppliedRule): boolean {
  return rule.mode === "enforce" && rule.onError === "local";
}
