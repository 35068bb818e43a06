import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { Counter } from "../engine/counter.ts";
import type { AppliedRule } from "../request/applied-rule.ts";
import { createMemoryStore } from "../stores/memory-store.ts";
import { StoreError } from "../stores/store-error.ts";
import { type DecideOptions, type RuleCounter, ruleCountersOf } from "./counters.ts";
import type { Allowed, Limited, Undecided } from "./decision.ts";
import { createNativeGuard, NATIVE_PERIOD_MS, type NativeLimiter } from "./native-limiter.ts";
import { quotasOf } from "./quotas.ts";

/** What a response turned out to cost, by one rule. */
export interface Charge {
  readonly subject: AppliedRule;
  readonly cost: number;
}

/** What stands in for the store where rules say `onError: "local"`. */
export interface Fallback {
  /** Whether these rules are to be decided here when the store could not decide them. */
  covers(rules: readonly Rule[]): boolean;

  /** Decides by what this isolate has seen since the store failed. Never rejects. */
  decide(
    subjects: readonly AppliedRule[],
    failure: Undecided,
    ask?: DecideOptions,
  ): Promise<Allowed | Limited | Undecided>;

  /** Charges what a response turned out to cost, as far as there is a place for it. Never rejects. */
  charge(charges: readonly Charge[]): Promise<void>;
}

/**
 * A limiter in this isolate alone, for the time that the store is away.
 *
 * Cloudflare runs many isolates and each counts for itself, so that together they may admit as many
 * times a rule's share as there are isolates that see the client. `localShare` is what part of a limit
 * one of them admits. The native limiter, if there is one, is asked too: it counts for a whole location.
 */
export function createFallback(
  { prefix, timeoutMs }: Pick<Config, "prefix" | "timeoutMs">,
  nativeLimiter?: NativeLimiter,
): Fallback {
  const store = createMemoryStore();
  const isWithinNativeLimit = createNativeGuard(nativeLimiter, timeoutMs);

  return {
    covers(rules) {
      const enforced = rules.filter(({ mode }) => mode === "enforce");
      const isClosed = enforced.some(({ onError }) => onError === "closed");
      return !isClosed && enforced.some(({ onError }) => onError === "local");
    },

    async decide(subjects, failure, ask) {
      const local = subjects.filter(isLocal);
      const entries = local.flatMap((subject) => localCountersOf(subject, prefix, ask));
      try {
        const now = Date.now();
        const verdict = await store.decide([entries.map(({ counter }) => counter)], now);
        const [answer] = verdict.groups;
        if (!answer) throw new StoreError("invalid-reply", "no verdict");
        const quotas = quotasOf(entries, answer, now);
        const deniedBy = entries.find((_, index) => quotas[index]?.violated);
        if (deniedBy) {
          const retryAfterMs = Math.max(...quotas.map((quota) => quota.retryAfterMs));
          return limited(deniedBy.rule, quotas, retryAfterMs, failure);
        }
        // Who only asks takes nothing, of the native limiter either.
        if (ask?.checkOnly) return allowed(failure);
        const isWithin = await Promise.all(local.map(isWithinNativeLimit));
        const below = local[isWithin.indexOf(false)];
        if (!below) return allowed(failure);
        await store.adjust(entries.filter(isCharged).map(takenOff), now);
        const violated = quotas.map((quota, at) =>
          entries[at]?.rule.name === below.rule.name
            ? { ...quota, violated: true, remaining: 0 }
            : quota,
        );
        return limited(below.rule, violated, NATIVE_PERIOD_MS, failure);
      } catch (error) {
        // Full, at worst: then it is decided as strictly as can be.
        const cause = error instanceof StoreError ? error.failure : "internal";
        return { ...failure, cause, detail: "this isolate cannot count either", open: false };
      }
    },

    async charge(charges) {
      const counters = charges
        .filter(({ subject }) => isLocal(subject))
        .flatMap(({ subject, cost }) => localCountersOf(subject, prefix, { cost }))
        .map(({ counter }) => counter);
      if (counters.length === 0) return;
      // Full: then the next decision finds no place for it either, and is strict.
      await store.adjust(counters, Date.now()).catch(() => {});
    },
  };
}

function allowed(local: Undecided): Allowed {
  return { outcome: "allowed", quotas: [], shadow: [], reservationDelayMs: 0, local };
}

function limited(
  rule: Rule,
  quotas: Limited["quotas"],
  retryAfterMs: number,
  local: Undecided,
): Limited {
  return { outcome: "limited", quotas, shadow: [], retryAfterMs, rule, local };
}

function isLocal({ rule }: AppliedRule): boolean {
  return rule.mode === "enforce" && rule.onError === "local";
}

function localCountersOf(subject: AppliedRule, prefix: string, ask?: DecideOptions): RuleCounter[] {
  return ruleCountersOf({ ...subject, rule: { ...subject.rule, shards: 1 } }, prefix, ask).map(
    localCounterOf,
  );
}

function isCharged({ counter }: RuleCounter): boolean {
  return !counter.checkOnly;
}

/** What takes off again what an entry has charged. */
function takenOff({ counter }: RuleCounter): Counter {
  return { ...counter, cost: -counter.cost };
}

/** The same counter with a share of its limit: nothing rolls over, and nothing is reserved. */
function localCounterOf({ counter, window, rule }: RuleCounter): RuleCounter {
  const { key, identity, windowMs, offsetMs, cost, checkOnly, banMs, neverBans } = counter;
  // Of the smallest limits there is still one, and room for whatever had room in the whole.
  const share = Math.max(localQuota(window.limit, rule.localShare), Math.min(cost, window.limit));
  return {
    rule,
    window,
    capacity: share,
    counter: {
      key,
      identity,
      windowMs,
      offsetMs,
      cost,
      limit: share,
      ceiling: share,
      ...(checkOnly && { checkOnly }),
      ...(banMs !== undefined && { banMs }),
      ...(neverBans && { neverBans }),
    },
  };
}

/** A part of a limit, rounded up; but not for what floating point adds: 100 × 0.07 is 7. */
function localQuota(limit: number, part: number): number {
  return Math.ceil(Number((limit * part).toPrecision(15)));
}
