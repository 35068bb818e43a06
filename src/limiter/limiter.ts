import { formatDuration } from "../config/duration.ts";
import type { Rule, Window } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { type Counter, type GroupVerdict, hasRoom } from "../engine/fixed-window.ts";
import type { Store, Verdict } from "../stores/store.ts";
import { StoreError } from "../stores/store-error.ts";
import { withDeadline } from "./deadline.ts";
import type { Decision, Quota, Undecided } from "./decision.ts";

/** A rule that a request falls under, and who is counted by it. */
export interface Subject {
  readonly rule: Rule;
  readonly identity: string;
}

export type Limiter = (subjects: readonly Subject[]) => Promise<Decision>;

/** A counter and the policy that it counts for. */
interface Entry {
  readonly rule: Rule;
  readonly window: Window;
  readonly counter: Counter;
}

/** Decides requests: all rules that one falls under in a single call of the store. */
export function createLimiter(config: Config, store: Store): Limiter {
  return async function decide(subjects) {
    // What is enforced stands or falls together; each rule in shadow mode is on its own.
    const enforced = subjects.filter(({ rule }) => rule.mode === "enforce");
    const shadows = subjects.filter(({ rule }) => rule.mode === "shadow");
    const live = enforced.flatMap((subject) => entriesOf(subject, config.prefix));
    const trial = shadows.map((subject) => entriesOf(subject, config.prefix));
    const groups = (live.length > 0 ? [live, ...trial] : trial).map((entries) =>
      entries.map(({ counter }) => counter),
    );

    let verdict: Verdict;
    try {
      const now = config.clock === "edge" ? Date.now() : undefined;
      verdict = await withDeadline(store.decide(groups, now), config.timeoutMs);
    } catch (error) {
      return undecided(
        error,
        subjects.map(({ rule }) => rule),
      );
    }
    const verdicts = [...verdict.groups];
    const liveVerdict = live.length > 0 ? verdicts.shift() : undefined;
    const shadow = trial.flatMap((entries, index) =>
      quotasOf(entries, verdicts[index] as GroupVerdict, verdict.now).filter(isViolated),
    );
    if (!liveVerdict) return { outcome: "allowed", quotas: [], shadow };
    const quotas = quotasOf(live, liveVerdict, verdict.now);
    if (liveVerdict.admitted) return { outcome: "allowed", quotas, shadow };
    const retryAfterMs = Math.max(...quotas.filter(isViolated).map(({ resetMs }) => resetMs));
    const { rule } = live[quotas.findIndex(isViolated)] as Entry;
    return { outcome: "limited", quotas, shadow, retryAfterMs, rule };
  };
}

function entriesOf({ rule, identity }: Subject, prefix: string): Entry[] {
  return rule.windows.map((window) => {
    const { limit, windowMs, offsetMs } = window;
    const key = `${prefix}:${rule.name}:${formatDuration(windowMs / 1000)}:${identity}`;
    return { rule, window, counter: { key, identity, limit, windowMs, offsetMs, cost: 1 } };
  });
}

function quotasOf(entries: readonly Entry[], verdict: GroupVerdict, now: number): Quota[] {
  return entries.map(({ window: { policy, limit, windowMs }, counter }, index) => {
    const { count, resetMs } = verdict.tallies[index] as GroupVerdict["tallies"][number];
    return {
      policy,
      limit,
      windowMs,
      remaining: Math.max(0, limit - count),
      resetMs,
      resetAt: now + resetMs,
      violated: !verdict.admitted && !hasRoom(counter, count),
    };
  });
}

function isViolated({ violated }: Quota): boolean {
  return violated;
}

/**
 * What comes of an error. One of Weir's own is one more way of not having decided, and must not
 * become a 500; only its kind is told, since nobody knows what its message holds.
 *
 * @param rules those that the request falls under: it passes when all that are enforced are open
 */
export function undecided(error: unknown, rules: readonly Rule[]): Undecided {
  const open = rules.every(({ mode, onError }) => mode === "shadow" || onError === "open");
  if (error instanceof StoreError) {
    return { outcome: "undecided", cause: error.failure, detail: error.message, open };
  }
  const detail = error instanceof Error ? error.name : typeof error;
  return { outcome: "undecided", cause: "internal", detail, open };
}
