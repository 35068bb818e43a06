import type { Quota } from "../config/custom.ts";
import type { Rule } from "../config/rule.ts";
import { type Demand, type Tally, windowAt, windowEndingNear } from "../engine/counter.ts";
import { hasQuota, quotaAfterMs } from "../engine/fixed-window.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { type Answer, StoreError, type StoreFailure } from "../stores/store.ts";
import {
  costBefore,
  dependsOnResponse,
  isChargedByResponse,
  isSettled,
  type Reserve,
  type RuleCounter,
} from "./counters.ts";

/**
 * What one rule alone says about a request, whatever its mode, and what the decision has charged under
 * it. Only a rule that admits the request is charged for the response.
 */
export interface RuleVerdict {
  readonly appliedRule: AppliedRule;
  /**
   * `denied`: the rule denies the request, or would deny it if it were enforced. `blocked`: an operator
   * has blocked the client under the rule.
   */
  readonly says: "admitted" | "denied" | "undecided" | "blocked";
  /** The shard that has decided; undefined if the rule has no shards. */
  readonly shard?: number;
  /** The quota that was charged before the response; undefined if there is none to settle. */
  readonly reserve?: Reserve;
  /**
   * Set only if the rule is in shadow mode and is decided later. It resolves to the verdict, or to an
   * empty list if the request is exempt, and never rejects. Until then, the rule is `undecided`.
   */
  readonly later?: Promise<readonly RuleVerdict[]>;
}

const NO_VERDICTS: readonly RuleVerdict[] = [];

/**
 * Returns the verdict of each rule of a group whose cost depends on the response. No other rule is
 * charged later.
 *
 * @param ruleCounters the counters of a rule follow one another, one for each window
 */
export function verdictsOf(
  ruleCounters: readonly RuleCounter[],
  answer: Answer,
): readonly RuleVerdict[] {
  let verdicts: RuleVerdict[] | undefined;
  let first = 0;
  while (first < ruleCounters.length) {
    const { appliedRule, rule } = ruleCounters[first] as RuleCounter;
    const own = first;
    first += appliedRule.windows.length;
    if (!dependsOnResponse(rule)) continue;
    verdicts ??= [];
    verdicts.push(verdictOf(ruleCounters.slice(own, first), answer, own));
  }
  return verdicts ?? NO_VERDICTS;
}

/** Returns verdicts without a charge, of the rules whose cost depends on the response. */
export function verdictsSaying(
  says: "undecided" | "blocked",
  appliedRules: readonly AppliedRule[],
): readonly RuleVerdict[] {
  const charged = appliedRules.filter(({ rule }) => dependsOnResponse(rule));
  return charged.map((appliedRule) => ({ appliedRule, says }));
}

/** Whether a rule is charged for the response, as far as is known. */
export function mayBeCharged({ says, later }: RuleVerdict): boolean {
  return says === "admitted" || later !== undefined;
}

/** Returns the quota that a rule reserves. If the rule is decided later, returns what it will reserve. */
export function reservedBy({ appliedRule, reserve, later }: RuleVerdict): number {
  const { rule, cost } = appliedRule;
  if (later && isSettled(rule)) return cost ?? costBefore(rule.cost);
  return reserve?.cost ?? 0;
}

/** @param first the index of the answer's tally for the rule's first counter */
function verdictOf(
  ruleCounters: readonly RuleCounter[],
  { admitted, tallies, now }: Answer,
  first: number,
): RuleVerdict {
  const [{ appliedRule, rule, shard, counter }] = ruleCounters as [RuleCounter];
  const verdict = {
    appliedRule,
    says: admitted ? "admitted" : "denied",
    ...(shard !== undefined && { shard }),
  } as const;
  if (!admitted || counter.checkOnly || !isSettled(rule)) return verdict;
  const windows: number[] = [];
  for (const [index, { counter: each }] of ruleCounters.entries()) {
    const tally = tallies[first + index];
    if (!tally) return verdict;
    // If quota rolls over, the window of the charge can be later than the window at `now`.
    const window = each.rollsOver
      ? windowEndingNear(now + tally.resetMs, each)
      : windowAt(now, each);
    windows.push(tally.chargedIn ?? window.index);
  }
  const shards = shard === undefined ? undefined : windows.map(() => shard);
  const reserve = { cost: counter.cost, windows, ...(shards && { shards }) };
  return { ...verdict, reserve };
}

export type { Quota } from "../config/custom.ts";

/** The decision on a request. An undecided request has no quotas. */
export type Decision = Allowed | Limited | Undecided;

/** The fields of decisions with quotas. */
interface DecidedFields {
  /**
   * Whether no call to the store was needed for the enforced rules, because this isolate decided
   * from leases or from remembered denials.
   */
  readonly fromMemory?: true;
}

export interface Allowed extends DecidedFields {
  readonly outcome: "allowed";
  /**
   * One quota for each window of each enforced rule, and then of each decided rule with the mode
   * `mark`. Only the quota of a rule with the mode `mark` can be violated. Empty if this isolate
   * decided alone.
   */
  readonly quotas: readonly Quota[];
  readonly shadow: ShadowResults;
  /** The verdict of each applied rule whose cost depends on the response, for the charge. */
  readonly verdicts: readonly RuleVerdict[];
  /** The rules with the mode `mark` that could not be decided although the enforced rules could. */
  readonly undecidedMarks?: readonly RuleUndecided[];
  /** Milliseconds until later windows have granted all reserved quota; 0 if none is reserved. */
  readonly reservationDelayMs: number;
  /** The store's failure, if this isolate decided alone (`onError: "local"`). */
  readonly storeFailure?: Undecided;
}

/** A rule that a request exceeds, with the client and the cost of the request. */
export interface ExceededRule {
  readonly rule: Rule;
  /** The client's identity under the rule. */
  readonly identity: string;
  /** The quota that the request would have taken. */
  readonly cost: number;
}

export interface Limited extends DecidedFields {
  readonly outcome: "limited";
  /** One quota for each window of each enforced rule. A denial from memory may lack some quotas. */
  readonly quotas: readonly Quota[];
  readonly shadow: ShadowResults;
  /** Milliseconds until the same request may fit into every quota that denied it. */
  readonly retryAfterMs: number;
  /** The first rule that denied the request, in the order of the configuration. */
  readonly rule: Rule;
  /** The same rule, with the client and the cost. */
  readonly exceeded: ExceededRule;
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

/**
 * A rule in shadow mode or with the mode `mark` that could not be decided. This does not affect the
 * enforced rules.
 */
export interface RuleUndecided {
  readonly policy: string;
  readonly cause: Undecided["cause"];
  readonly detail: string;
}

/** A quota of a rule in shadow mode that would have denied the request. */
export interface ShadowDenial extends Quota, ExceededRule {}

/** The result of a rule in shadow mode: a denial, or the reason why the rule is undecided. */
export type ShadowResult = ShadowDenial | RuleUndecided;

/**
 * The results of rules in shadow mode. An element is a promise if its rule is decided later. The
 * request does not wait for this promise.
 */
export type ShadowResults = readonly (ShadowResult | Promise<readonly ShadowResult[]>)[];

/** The decision for a request to which no enforced rule applies, without the shadow results. */
export const NO_ENFORCED_RULE = {
  outcome: "allowed",
  quotas: [],
  verdicts: [],
  reservationDelayMs: 0,
} as const;

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
    const { count, resetMs, banMs } = tally;
    // The store's clock may differ from `now`, and a window ends only at its own end.
    const { startsAt, endsAt } = windowEndingNear(now + resetMs, counter);
    const after = admitted ? count + checkedCost(ruleCounter) : count;
    return {
      policy,
      limit,
      windowMs: calendar ? endsAt - startsAt : window.windowMs,
      ...(calendar && { calendar: calendar.unit }),
      remaining: banMs > 0 ? 0 : Math.max(0, capacity - count),
      resetMs,
      resetAt: endsAt,
      violated: !admitted && exceeds(counter, tally),
      retryAfterMs: Math.max(banMs, quotaAfterMs(counter, tally, capacity, now)),
      // Without reservations, the count can exceed the capacity only after a settlement.
      reservationDelayMs:
        window.maxReserved > 0 && after > capacity
          ? quotaAfterMs({ ...counter, cost: 0 }, { ...tally, count: after }, capacity, now)
          : 0,
    };
  });
}

/**
 * Returns the cost that a program has only checked. A check says how long the reservation would take that
 * it does not make.
 */
function checkedCost({ rule, counter }: RuleCounter): number {
  return counter.checkOnly && !isChargedByResponse(rule) ? counter.cost : 0;
}

/** Whether a counter has denied its group: the client is banned, or no quota is left for the cost. */
export function exceeds(counter: Demand, { count, banMs }: Tally): boolean {
  return banMs > 0 || !hasQuota(counter, count);
}

export function isViolated({ violated }: Quota): boolean {
  return violated;
}

// Rules with the mode `mark`. Each rule is a dependent group in the call to the store: it is charged
// only if the enforced rules admit the request and the rule has quota left in all of its windows.

/**
 * Adds the results of the mark rules to a decision. Waits for their answers, because the origin must
 * get the mark with the request. The store bounds this time. Never rejects.
 *
 * @param groups the counters of each mark rule
 * @param answered the answer for each mark rule
 */
export async function withMarks(
  decision: Allowed,
  groups: readonly (readonly RuleCounter[])[],
  answered: readonly Promise<Answer>[],
): Promise<Allowed> {
  const quotas: Quota[] = [];
  const verdicts: RuleVerdict[] = [...decision.verdicts];
  const undecidedMarks: RuleUndecided[] = [];
  for (const [index, ruleCounters] of groups.entries()) {
    try {
      const answer = (await answered[index]) as Answer;
      quotas.push(...markQuotasOf(ruleCounters, answer));
      verdicts.push(...verdictsOf(ruleCounters, answer));
    } catch (error) {
      const { appliedRule, rule } = ruleCounters[0] as RuleCounter;
      undecidedMarks.push(ruleUndecided(rule, error));
      verdicts.push(...verdictsSaying("undecided", [appliedRule]));
    }
  }
  const delays = quotas.filter((quota) => !quota.violated).map((quota) => quota.reservationDelayMs);
  return {
    ...decision,
    quotas: [...decision.quotas, ...quotas],
    verdicts,
    reservationDelayMs: Math.max(decision.reservationDelayMs, ...delays),
    ...(undecidedMarks.length > 0 && { undecidedMarks }),
  };
}

/** @throws {StoreError} ("invalid-reply") if the store denied although every counter has quota left */
function markQuotasOf(ruleCounters: readonly RuleCounter[], answer: Answer): Quota[] {
  const quotas = quotasOf(ruleCounters, answer);
  if (answer.admitted || quotas.some(isViolated)) return quotas;
  throw new StoreError("invalid-reply", "a denial, though every counter has quota left");
}

export function ruleUndecided({ name }: Rule, error: unknown): RuleUndecided {
  const { cause, detail } = toUndecided(error, []);
  return { policy: name, cause, detail };
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
  const { fromMemory } = answer;
  const quotas = quotasOf(enforcedCounters, answer);
  if (answer.admitted) {
    const verdicts = verdictsOf(enforcedCounters, answer);
    const reservationDelayMs = Math.max(...quotas.map((quota) => quota.reservationDelayMs));
    // Both forms are written out, because a spread is slower, and this code runs for each request.
    return fromMemory
      ? { outcome: "allowed", quotas, shadow: [], verdicts, reservationDelayMs, fromMemory }
      : { outcome: "allowed", quotas, shadow: [], verdicts, reservationDelayMs };
  }
  const violated = quotas.filter(isViolated);
  const deniedBy = enforcedCounters.find(({ window }) => window.policy === violated[0]?.policy);
  if (!deniedBy) {
    throw new StoreError("invalid-reply", "a denial, though every counter has quota left");
  }
  const retryAfterMs = Math.max(...violated.map((quota) => quota.retryAfterMs));
  const { rule } = deniedBy;
  return {
    outcome: "limited",
    quotas,
    shadow: [],
    retryAfterMs,
    rule,
    exceeded: exceededRuleOf(deniedBy),
    ...(fromMemory && { fromMemory }),
  };
}

/** @param ruleCounter any counter of the rule, because all of them have the same cost */
export function exceededRuleOf({ appliedRule, counter }: RuleCounter): ExceededRule {
  const { rule, identity } = appliedRule;
  return { rule, identity, cost: counter.cost };
}

/** Returns the violated quotas of a rule in shadow mode. Never rejects. */
export async function shadowResultsOf(
  ruleCounters: readonly RuleCounter[],
  answered: Promise<Answer>,
): Promise<readonly ShadowResult[]> {
  const [first] = ruleCounters as [RuleCounter];
  try {
    const exceeded = exceededRuleOf(first);
    const quotas = quotasOf(ruleCounters, await answered).filter(isViolated);
    return quotas.map((quota) => ({ ...quota, ...exceeded }));
  } catch (error) {
    return [ruleUndecided(first.rule, error)];
  }
}

/** Returns the verdict of a rule in shadow mode, if its cost depends on the response. Never rejects. */
export function shadowVerdictsOf(
  ruleCounters: readonly RuleCounter[],
  answered: Promise<Answer>,
): readonly RuleVerdict[] {
  const undecided = verdictsSaying("undecided", [(ruleCounters[0] as RuleCounter).appliedRule]);
  const later = answered.then(
    (answer) => verdictsOf(ruleCounters, answer),
    () => undecided,
  );
  return undecided.map((verdict) => ({ ...verdict, later }));
}
