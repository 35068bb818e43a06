import { waitUntil } from "cloudflare:workers";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { AppliedRule } from "../request/applied-rule.ts";
import { withDeadline } from "../stores/deadline.ts";
import type { GroupAnswer, Store, Verdict } from "../stores/store.ts";
import { StoreError } from "../stores/store-error.ts";
import {
  allCountersOf,
  chargesLater,
  type DecideOptions,
  decidedCountersOf,
  type RuleCounter,
  ruleCountersOf,
} from "./counters.ts";
import type {
  Allowed,
  Decision,
  Limited,
  Quota,
  ShadowResult,
  ShadowUndecided,
  Undecided,
} from "./decision.ts";
import { type Charge, createFallback } from "./fallback.ts";
import { type NativeLimiter, nativeTimeoutMs } from "./native-limiter.ts";
import { isViolated, quotasOf } from "./quotas.ts";

/** What an origin's response says about what a request cost. */
export interface Outcome {
  readonly status: number;
  readonly headers: Headers;
}

export interface Limiter {
  /**
   * Decides: all rules that a request falls under, in a single call of the store. Never rejects.
   *
   * @param spentMs what it has taken so far to learn who is counted: it is taken off the deadline
   */
  decide(
    subjects: readonly AppliedRule[],
    ask?: DecideOptions,
    spentMs?: number,
  ): Promise<Decision>;

  /**
   * Charges the rules that wait for the response to tell what it cost.
   *
   * @param isLocal whether this isolate decided alone: then it charges alone too
   * @returns their quotas as they stand then; none where nothing was charged
   * @throws {StoreError}
   */
  settle(subjects: readonly AppliedRule[], outcome: Outcome, isLocal?: boolean): Promise<Quota[]>;

  /**
   * Gives quota back.
   *
   * @throws {StoreError}
   */
  refund(subject: AppliedRule, cost: number): Promise<Quota[]>;

  /**
   * Makes a client new to a rule: nothing used, and no ban.
   *
   * @throws {StoreError}
   */
  reset(subject: AppliedRule): Promise<void>;
}

/** The part of the deadline that a request's keys must have taken for it to be taken off. */
const NOTICEABLE = 0.05;

/** @param nativeLimiter what `onError: "local"` asks beside its own counters */
export function createLimiter(
  config: Config,
  store: Store,
  nativeLimiter?: NativeLimiter,
): Limiter {
  const { prefix, timeoutMs } = config;
  const fallback = createFallback(config, nativeLimiter);
  const time = () => (config.clock === "edge" ? Date.now() : undefined);
  /** What is left of the deadline for the store; half of it at least. */
  const left = (spentMs: number) => Math.max(timeoutMs / 2, timeoutMs - spentMs);

  async function adjust(entries: readonly RuleCounter[]): Promise<Quota[]> {
    const counters = entries.map(({ counter }) => counter);
    const now = time();
    const tallies = await store.adjust(counters, now);
    return quotasOf(entries, { admitted: true, tallies }, now ?? Date.now());
  }

  function entriesToCharge({ subject, cost }: Charge): RuleCounter[] {
    return decidedCountersOf(subject, prefix, { cost });
  }

  /** Charges rules in shadow mode: by a call of their own, since no enforced rule may fail with it. */
  async function settleShadow(subjects: readonly AppliedRule[], outcome: Outcome): Promise<void> {
    const resolved = await Promise.all(subjects.map((subject) => subject.later ?? [subject]));
    const entries = chargesOf(resolved.flat(), outcome).flatMap(entriesToCharge);
    if (entries.length > 0) await adjust(entries);
  }

  /** Decides a rule in shadow mode whose client is not known yet. Never rejects. */
  async function decideShadowLater(
    { rule, later }: AppliedRule,
    ask: DecideOptions | undefined,
  ): Promise<readonly ShadowResult[]> {
    try {
      const subjects = (await later) ?? [];
      const shadowed = subjects.map((subject) => ruleCountersOf(subject, prefix, ask));
      if (shadowed.length === 0) return [];
      const groups = shadowed.map((entries) => entries.map(({ counter }) => counter));
      const { shadow } = decisionOf(await store.decide(groups, time()), [], shadowed);
      return (await Promise.all(shadow)).flat();
    } catch (error) {
      return [shadowUndecided(rule, error)];
    }
  }

  return {
    async decide(subjects, ask, spentMs = 0) {
      // What is enforced stands or falls together; each rule in shadow mode is on its own.
      const enforced: RuleCounter[] = [];
      const trial: RuleCounter[][] = [];
      const late: Promise<readonly ShadowResult[]>[] = [];
      for (const subject of subjects) {
        if (subject.later) late.push(decideShadowLater(subject, ask));
        else if (subject.rule.mode === "shadow") trial.push(ruleCountersOf(subject, prefix, ask));
        else enforced.push(...ruleCountersOf(subject, prefix, ask));
      }
      const groups = (enforced.length > 0 ? [enforced, ...trial] : trial).map((entries) =>
        entries.map(({ counter }) => counter),
      );

      if (groups.length === 0) return { ...NOTHING, shadow: late };
      try {
        // Where the native limiter may be asked after the store, both share the deadline.
        const asksNativeLimiter =
          nativeLimiter !== undefined && fallback.covers(subjects.map(({ rule }) => rule));
        const takenMs = spentMs + (asksNativeLimiter ? nativeTimeoutMs(timeoutMs) : 0);
        const isShorter = asksNativeLimiter || spentMs > timeoutMs * NOTICEABLE;
        const inTime = isShorter ? withDeadline(store, left(takenMs)) : store;
        const verdict = await inTime.decide(groups, time());
        const decision = decisionOf(verdict, enforced, trial);
        return late.length === 0
          ? decision
          : { ...decision, shadow: [...decision.shadow, ...late] };
      } catch (error) {
        const rules = subjects.map(({ rule }) => rule);
        const failure = undecided(error, rules);
        return fallback.covers(rules) ? fallback.decide(subjects, failure, ask) : failure;
      }
    },

    async settle(subjects, outcome, isLocal = false) {
      const later = subjects.filter(({ rule }) => chargesLater(rule));
      const trial = later.filter(({ rule }) => rule.mode === "shadow");
      if (trial.length > 0 && !isLocal) waitUntil(settleShadow(trial, outcome).catch(() => {}));
      const enforced = later.filter(({ rule }) => rule.mode === "enforce");
      const charges = chargesOf(enforced, outcome);
      if (charges.length === 0) return [];
      if (isLocal) {
        await fallback.charge(charges);
        return [];
      }
      try {
        return await adjust(charges.flatMap(entriesToCharge));
      } catch (error) {
        await fallback.charge(charges);
        throw error;
      }
    },

    refund(subject, cost) {
      return adjust(ruleCountersOf(subject, prefix, { cost: -cost }));
    },

    async reset(subject) {
      const counters = allCountersOf(subject, prefix).map(({ counter }) => counter);
      await store.reset(counters, time());
    },
  };
}

/**
 * What a verdict means. Its first group is what is enforced, if anything is; the others are the
 * rules in shadow mode.
 *
 * @throws {StoreError} ("invalid-reply") for a denial by nobody
 */
function decisionOf(
  { groups, now }: Verdict,
  live: readonly RuleCounter[],
  trial: readonly (readonly RuleCounter[])[],
): Allowed | Limited {
  const verdicts = [...groups];
  const liveVerdict = live.length > 0 ? verdicts.shift() : undefined;
  const shadow = trial.flatMap((entries, index) =>
    shadowOf(entries, verdicts[index] as GroupAnswer, now),
  );
  if (!liveVerdict) return { ...NOTHING, shadow };
  const quotas = quotasOf(live, liveVerdict, now);
  if (liveVerdict.admitted) {
    const reservationDelayMs = Math.max(...quotas.map((quota) => quota.reservationDelayMs));
    return { outcome: "allowed", quotas, shadow, reservationDelayMs: reservationDelayMs };
  }
  const violated = quotas.filter(isViolated);
  const deniedBy = live.find(({ window }) => window.policy === violated[0]?.policy);
  if (!deniedBy) throw new StoreError("invalid-reply", "a denial, though every counter has room");
  const retryAfterMs = Math.max(...violated.map((quota) => quota.retryAfterMs));
  return { outcome: "limited", quotas, shadow, retryAfterMs, rule: deniedBy.rule };
}

/** A request that no enforced rule is about. */
const NOTHING = { outcome: "allowed", quotas: [], reservationDelayMs: 0 } as const;

/** What a rule in shadow mode would have done. */
function shadowOf(
  entries: readonly RuleCounter[],
  answer: GroupAnswer,
  now: number,
): (ShadowResult | Promise<ShadowResult[]>)[] {
  const { later } = answer;
  if (!later) return quotasOf(entries, answer, now).filter(isViolated);
  const result = later.then(
    (late) => quotasOf(entries, late.groups[0] as GroupAnswer, late.now).filter(isViolated),
    (error) => [shadowUndecided((entries[0] as RuleCounter).rule, error)],
  );
  return [result];
}

function shadowUndecided({ name }: Rule, error: unknown): ShadowUndecided {
  const { cause, detail } = undecided(error, []);
  return { policy: name, cause, detail };
}

function chargesOf(subjects: readonly AppliedRule[], outcome: Outcome): Charge[] {
  return subjects
    .map((subject) => ({ subject, cost: costOf(subject.rule, outcome) }))
    .filter(({ cost }) => cost > 0);
}

/** What a request cost by its response: 1 where a header is to say and does not. */
function costOf({ cost, countStatus }: Rule, { status, headers }: Outcome): number {
  if (countStatus && !countStatus.includes(status)) return 0;
  if (typeof cost === "number") return cost;
  const text = headers.get(cost.header)?.trim() ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : 1;
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
