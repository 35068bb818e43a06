import type { Quota } from "../config/custom.ts";
import type { Rule } from "../config/rule.ts";
import {
  type Demand,
  type Tally,
  windowAt,
  windowEndingNear,
  withCost,
} from "../engine/counter.ts";
import { hasQuota, quotaAfterMs } from "../engine/fixed-window.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { type Answer, StoreError, type StoreFailure } from "../stores/store.ts";
import {
  costBefore,
  dependsOnResponse,
  isChargedByResponse,
  isSettled,
  type Misfit,
  type Reserve,
  type RuleCounter,
} from "./counters.ts";
import type { HeldSlots } from "./held-slots.ts";

/** The verdict of one rule (in any mode) on a request, and the quota that the decision has charged under the rule. */
export interface RuleVerdict {
  readonly appliedRule: AppliedRule;
  /**
   * `denied`: the group of the rule denies the request. All enforced rules form one group. Each other rule forms its
   * own group.
   */
  readonly says: "admitted" | "denied" | "undecided";
  /** One quota for each window. A denial from memory may lack some quotas. An undecided rule has no quotas. */
  readonly quotas: readonly Quota[];
  /** The quota that the request takes, or would have taken. */
  readonly cost: number;
  /** The policies of the rule that can never admit the request. Present only if the rule denies it. */
  readonly misfits?: readonly Misfit[];
  /** The shard that has decided; undefined if the rule has no shards. */
  readonly shard?: number;
  /** The quota that was charged before the response and must be settled; undefined if there is none. */
  readonly reserve?: Reserve;
  /** Why a rule in shadow mode or with the mode `mark` is undecided. */
  readonly failure?: Pick<Undecided, "cause" | "detail">;
  /**
   * Resolves to the verdict, or to an empty list if the request is exempt. Never rejects. A rule in shadow mode has this
   * field, because no request waits for it. So has a rule with the mode `mark` if the request is denied or passes ahead,
   * and a rule with `async` if the request passes ahead. Until the promise resolves, the rule is `undecided`.
   */
  readonly pendingVerdict?: Promise<readonly RuleVerdict[]>;
}

/**
 * Returns the verdict of each rule of a group, in the order of the rules.
 *
 * @param ruleCounters one counter for each window, rule by rule
 */
export function verdictsOf(ruleCounters: readonly RuleCounter[], answer: Answer): RuleVerdict[] {
  const verdicts: RuleVerdict[] = [];
  let first = 0;
  while (first < ruleCounters.length) {
    const { appliedRule } = ruleCounters[first] as RuleCounter;
    const end = first + appliedRule.windows.length;
    const tallies = answer.tallies.slice(first, end);
    verdicts.push(verdictOf(ruleCounters.slice(first, end), tallies, answer));
    first = end;
  }
  return verdicts;
}

/** Returns the verdict of a rule that forms its own group. Never rejects. */
export async function singleVerdictOf(
  ruleCounters: readonly RuleCounter[],
  answered: Promise<Answer>,
): Promise<RuleVerdict> {
  try {
    const [verdict] = verdictsOf(ruleCounters, await answered) as [RuleVerdict];
    if (verdict.says === "denied") denyingVerdictOf([verdict]);
    return verdict;
  } catch (error) {
    const [{ appliedRule }] = ruleCounters as [RuleCounter];
    return undecidedVerdict(appliedRule, error);
  }
}

/** Returns the verdict of a rule that could not be decided and is not enforced. Enforced rules are not affected. */
export function undecidedVerdict(appliedRule: AppliedRule, error: unknown): RuleVerdict {
  const { cause, detail } = toUndecided(error, []);
  return { ...withoutVerdict(appliedRule), failure: { cause, detail } };
}

/** Returns the verdict of a rule that is not decided yet. */
export function pendingVerdictOf(
  appliedRule: AppliedRule,
  pendingVerdict: Promise<readonly RuleVerdict[]>,
): RuleVerdict {
  return { ...withoutVerdict(appliedRule), pendingVerdict };
}

/** Waits for the verdicts of rules that are not decided yet. Never rejects. */
export async function settledVerdictsOf(verdicts: readonly RuleVerdict[]): Promise<RuleVerdict[]> {
  return (await Promise.all(verdicts.map((each) => each.pendingVerdict ?? [each]))).flat();
}

function withoutVerdict(appliedRule: AppliedRule) {
  const { rule, cost = costBefore(rule.cost) } = appliedRule;
  return { appliedRule, says: "undecided", quotas: [], cost } as const;
}

/** Whether a rule may still be charged for the response. */
export function mayBeCharged({ appliedRule, says, pendingVerdict }: RuleVerdict): boolean {
  return (
    dependsOnResponse(appliedRule.rule) && (says === "admitted" || pendingVerdict !== undefined)
  );
}

/** Returns the quota that a rule reserves, or will reserve if the rule is decided later. */
export function reservedBy({ appliedRule, reserve, cost, pendingVerdict }: RuleVerdict): number {
  return pendingVerdict && isSettled(appliedRule.rule) ? cost : (reserve?.cost ?? 0);
}

function verdictOf(
  ruleCounters: readonly RuleCounter[],
  tallies: Answer["tallies"],
  { admitted, now }: Pick<Answer, "admitted" | "now">,
): RuleVerdict {
  const [{ appliedRule, rule, shard, counter }] = ruleCounters as [RuleCounter];
  const verdict: { -readonly [Field in keyof RuleVerdict]: RuleVerdict[Field] } = {
    appliedRule,
    says: admitted ? "admitted" : "denied",
    quotas: quotasOf(ruleCounters, { admitted, tallies, now }),
    cost: counter.cost,
  };
  if (shard !== undefined) verdict.shard = shard;
  const misfits = admitted ? [] : ruleCounters.flatMap(({ misfit }) => misfit ?? []);
  if (misfits.length > 0) verdict.misfits = misfits;
  if (!admitted || counter.checkOnly || !isSettled(rule)) return verdict;
  const windows: number[] = [];
  for (const [index, { counter: each }] of ruleCounters.entries()) {
    const tally = tallies[index];
    if (!tally) return verdict;
    windows.push(chargedWindowOf(each, tally, now));
  }
  const shards = shard === undefined ? undefined : windows.map(() => shard);
  verdict.reserve = { cost: counter.cost, windows, ...(shards && { shards }) };
  return verdict;
}

/** Returns the number of the window in which an admitted request was charged. */
export function chargedWindowOf(counter: Demand, tally: Tally, now: number) {
  const { resetMs, ring, chargedIn = ring?.window } = tally;
  if (chargedIn !== undefined) return chargedIn;
  // If quota rolls over, the window of the charge can be later than the window at `now`.
  const window = counter.rollsOver
    ? windowEndingNear(now + resetMs, counter)
    : windowAt(now, counter);
  return window.index;
}

/**
 * Returns the first verdict that has a violated quota, in the order of the configuration.
 *
 * @throws {StoreError} ("invalid-reply") if the store denied although every counter has quota left
 */
function denyingVerdictOf(verdicts: readonly RuleVerdict[]): RuleVerdict {
  const denying = verdicts.find(({ quotas }) => quotas.some(isViolated));
  if (denying) return denying;
  throw new StoreError("invalid-reply", "a denial, though every counter has quota left");
}

export type { Quota } from "../config/custom.ts";

/** The decision on a request. An undecided request has no quotas. */
export type Decision = Allowed | Limited | Undecided;

interface Waited {
  /** The time in milliseconds for which the request has waited for its turn. Missing if it has not waited. */
  readonly waitedMs?: number;
}

/** The fields of decisions with quotas. */
interface DecidedFields extends Waited {
  /**
   * The verdict of each applied rule. A denial without a call may lack rules that are not enforced.
   * If this isolate decided alone, there are only the rules that it has counted.
   */
  readonly verdicts: readonly RuleVerdict[];
  /** The store's failure, if this isolate decided alone (`onError: "local"`). */
  readonly storeFailure?: Undecided;
  /**
   * Whether the enforced rules needed no call to the store, because this isolate decided from leases or from cached
   * denials.
   */
  readonly fromMemory?: true;
}

/** The part of a quota that does not depend on its use. */
export type Policy = Pick<Quota, "policy" | "limit" | "windowMs" | "concurrent" | "sliding">;

/** The decision on a request that passes ahead. */
export interface Ahead {
  /** Returns the policies of all enforced rules. */
  readonly policies: () => readonly Policy[];
  /** Returns the quotas that are known by now: from the answer or, until it arrives, from this isolate's memory. */
  readonly quotas: () => readonly Quota[];
  /** Resolves to the verdicts of the rules with `async`. Never rejects. */
  readonly verdicts: Promise<readonly RuleVerdict[]>;
}

export interface Allowed extends DecidedFields {
  readonly outcome: "allowed";
  /**
   * One quota for each window of each enforced rule, and then of each decided rule with the mode
   * `mark`. Only the quota of a rule with the mode `mark` can be violated. Empty if this isolate
   * decided alone.
   */
  readonly quotas: readonly Quota[];
  /** Milliseconds until later windows have granted all reserved quota; 0 if none is reserved. */
  readonly reservationDelayMs: number;
  /** Present if the request passes before the store has decided it. `quotas` then lack those of rules with `async`. */
  readonly ahead?: Ahead;
  /** The slots that the request holds. The caller must release them when the request ends. */
  readonly slots?: HeldSlots;
}

/** Returns the quotas of an allowed request that are known by now. */
export function knownQuotas({ quotas, ahead }: Allowed): readonly Quota[] {
  return ahead?.quotas() ?? quotas;
}

/** The reason of a denial that no retry can change: the cost is above what a limit can ever grant. */
export const EXCEEDS_LIMIT = "exceeds-limit" as const;

export interface Limited extends DecidedFields {
  readonly outcome: "limited";
  /** One quota for each window of each enforced rule. A denial from memory may lack some quotas. */
  readonly quotas: readonly Quota[];
  /**
   * Milliseconds until the same request may fit into every quota that denied it. Missing if it can never pass: then the
   * verdict of an enforced rule has `misfits`.
   */
  readonly retryAfterMs?: number;
  /** The verdict of the first rule that denied the request, in the order of the configuration. */
  readonly deniedBy: RuleVerdict;
}

export interface Undecided extends Waited {
  readonly outcome: "undecided";
  /** The store's failure; `internal` for any other error. */
  readonly cause: StoreFailure | "internal";
  /** Details for an operator. Contains no key and no secret. */
  readonly detail: string;
  /** Whether the request passes, because all enforced rules that apply have `onError: "open"`. */
  readonly open: boolean;
}

/** The decision for a request to which no enforced rule applies. */
export const NO_ENFORCED_RULE = {
  outcome: "allowed",
  quotas: [],
  verdicts: [],
  reservationDelayMs: 0,
} as const;

/**
 * Turns an error into a decision, because an error in Weir must not cause a response with status 500. The detail of
 * an unexpected error is only its name, because its message could contain a key or a secret.
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

/** Returns the quotas of a group's counters. A denial from a cache may lack some of the tallies. */
export function quotasOf(
  ruleCounters: readonly RuleCounter[],
  { admitted, tallies, now }: Pick<Answer, "admitted" | "tallies" | "now">,
): Quota[] {
  return ruleCounters.flatMap((ruleCounter, index): Quota | never[] => {
    const { window, capacity, counter } = ruleCounter;
    const { policy, limit, calendar } = window;
    const tally = tallies[index];
    if (!tally) return [];
    const { count, resetMs, banMs, retryMs = Number.POSITIVE_INFINITY } = tally;
    const violated = !admitted && exceeds(counter, tally);
    // The store's clock may differ from `now`, so the end of the window is computed from `resetMs`.
    const { startsAt, endsAt } = window.concurrent
      ? { startsAt: now, endsAt: now + resetMs }
      : windowEndingNear(now + resetMs, counter);
    const after = admitted ? count + checkedCost(ruleCounter) : count;
    return {
      policy,
      limit,
      windowMs: calendar ? endsAt - startsAt : window.windowMs,
      ...(calendar && { calendar: calendar.unit }),
      ...(window.concurrent && { concurrent: true }),
      ...(window.sliding !== undefined && { sliding: window.sliding }),
      remaining: banMs > 0 ? 0 : Math.max(0, capacity - count),
      resetMs,
      resetAt: endsAt,
      violated,
      ...((!violated || !ruleCounter.misfit) && {
        retryAfterMs: Math.min(
          retryMs,
          Math.max(banMs, quotaAfterMs(counter, tally, capacity, now)),
        ),
      }),
      // Without reservations, the count can exceed the capacity only after a settlement.
      reservationDelayMs:
        window.maxReserved > 0 && after > capacity
          ? quotaAfterMs(withCost(counter, 0), { ...tally, count: after }, capacity, now)
          : 0,
    };
  });
}

/** Returns the policies of counters whose states may be unknown. */
export function policiesOf(ruleCounters: readonly RuleCounter[], now: number): Policy[] {
  const tallies = ruleCounters.map(({ counter }) => {
    return { count: 0, resetMs: windowAt(now, counter).endsAt - now, banMs: 0 };
  });
  return quotasOf(ruleCounters, { admitted: true, tallies, now });
}

/**
 * Returns the cost that a program has only checked. The answer to a check says how long the reservation would last.
 */
function checkedCost({ rule, counter }: RuleCounter): number {
  return counter.checkOnly && !isChargedByResponse(rule) ? counter.cost : 0;
}

/** Whether a counter has denied its group, because the client is banned or too little quota is left for the cost. */
export function exceeds(counter: Demand, { count, banMs }: Tally): boolean {
  return banMs > 0 || !hasQuota(counter, count);
}

export function isViolated({ violated }: Quota): boolean {
  return violated;
}

/** Adds the verdicts of the rules with the mode `mark` to a decision, because the origin gets their quotas. */
export function withMarks(decision: Allowed, marks: readonly RuleVerdict[]): Allowed {
  if (marks.length === 0) return decision;
  const quotas = marks.flatMap((mark) => mark.quotas);
  const delays = quotas.filter((quota) => !quota.violated).map((quota) => quota.reservationDelayMs);
  return {
    ...decision,
    quotas: [...decision.quotas, ...quotas],
    verdicts: [...decision.verdicts, ...marks],
    reservationDelayMs: Math.max(decision.reservationDelayMs, ...delays),
  };
}

/**
 * Turns a store's answer for the enforced rules into a decision.
 *
 * @throws {StoreError} ("invalid-reply") if the store denied although every counter has quota left
 */
export function decisionOf(
  answer: Answer,
  enforcedCounters: readonly RuleCounter[],
): Allowed | Limited {
  const verdicts = verdictsOf(enforcedCounters, answer);
  const [first] = verdicts as [RuleVerdict];
  const quotas = verdicts.length === 1 ? first.quotas : verdicts.flatMap((each) => each.quotas);
  const fields = { quotas, verdicts, ...(answer.fromMemory && { fromMemory: true as const }) };
  if (answer.admitted) {
    const reservationDelayMs = Math.max(...quotas.map((quota) => quota.reservationDelayMs));
    return { outcome: "allowed", ...fields, reservationDelayMs };
  }
  const deniedBy = denyingVerdictOf(verdicts);
  const denial = { outcome: "limited", ...fields, deniedBy } as const;
  // Without its tally, a policy that can never admit the request is in no quota.
  if (verdicts.some((each) => each.misfits)) return denial;
  const times = quotas.filter(isViolated).map((quota) => quota.retryAfterMs ?? 0);
  return { ...denial, retryAfterMs: Math.max(...times) };
}
