import type { Config } from "../config/schema.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import { inTime } from "../stores/deadline.ts";
import type { Answer, Store } from "../stores/store.ts";
import {
  blockedInShadow,
  certainDenialOf,
  isBlocked,
  isBlockedUnenforced,
  withBlocked,
} from "./blocked.ts";
import { Clients } from "./clients.ts";
import { type CostOf, chargedCountersOf, type ResponseCharge, responseChargesOf } from "./cost.ts";
import {
  addToGroups,
  type CounterGroups,
  countersOf,
  type DecideOptions,
  emptyGroups,
  type Reserve,
  type RuleCounter,
  ruleCountersOf,
  storeGroupsOf,
  timeOf,
} from "./counters.ts";
import {
  type Allowed,
  type Decision,
  decisionOf,
  type Limited,
  mayBeCharged,
  NO_ENFORCED_RULE,
  type Quota,
  quotasOf,
  type RuleVerdict,
  ruleUndecided,
  type ShadowResult,
  type ShadowResults,
  shadowResultsOf,
  shadowVerdictsOf,
  toUndecided,
  verdictsSaying,
  withMarks,
} from "./decision.ts";
import { createFallback, type Fallback, type NativeLimiter } from "./fallback.ts";

/**
 * If identifying the client takes at most this part of the deadline, the store's deadline stays the
 * same. So most requests need no wrapper that shortens the deadline.
 */
const NEGLIGIBLE_SHARE = 0.05;

/** The decision on rules in shadow mode. */
interface ShadowDecision {
  readonly results: readonly ShadowResult[];
  readonly verdicts: readonly RuleVerdict[];
}

/**
 * The maximum number of calls in {@link SHADOW_PERIOD_MS} that an isolate makes for rules in shadow mode
 * although the request is denied without a call. Otherwise a denied client could cause a call with each
 * request, by varying the key of a rule in shadow mode.
 */
const SHADOW_CALLS = 20;
const SHADOW_PERIOD_MS = 10_000;

type LimiterConfig = Pick<Config, "clock" | "prefix" | "timeoutMs">;

interface LimiterOptions {
  /** Called for rules with `onError: "local"` if the store fails. */
  readonly nativeLimiter?: NativeLimiter | undefined;
  /** Lets a task run to its end although no response waits for it. */
  readonly background?: (task: Promise<unknown>) => void;
  /** Returns this isolate's time, in milliseconds since the Unix epoch. @default Date.now */
  readonly time?: () => number;
}

/**
 * Decides requests by the rules that apply to them, and charges rules whose cost depends on the
 * response. Loads in Node too.
 */
export class Limiter {
  /** Reads and changes the stored states of clients. */
  readonly clients: Clients;
  readonly #config: LimiterConfig;
  readonly #store: Store;
  readonly #fallback: Fallback;
  readonly #background: (task: Promise<unknown>) => void;
  readonly #time: () => number;
  /** The number of the period in which `#shadowCalls` were made. */
  #shadowPeriod = 0;
  #shadowCalls = 0;

  constructor(
    config: LimiterConfig,
    store: Store,
    { nativeLimiter, background = () => {}, time = () => Date.now() }: LimiterOptions = {},
  ) {
    this.clients = new Clients(config, store);
    this.#config = config;
    this.#store = store;
    this.#fallback = createFallback(config, nativeLimiter);
    this.#background = background;
    this.#time = time;
  }

  /**
   * Decides a request by all rules that apply to it. Never rejects. One call to the store decides
   * all rules, except for rules in shadow mode whose client is identified later.
   *
   * @param spentMs the time that Weir needed to identify the client, in milliseconds. If this time
   * is long, the store gets less time
   */
  decide(
    appliedRules: readonly AppliedRule[],
    options?: DecideOptions,
    spentMs = 0,
  ): Promise<Decision> {
    if (!appliedRules.some(isBlockedUnenforced))
      return this.#decideUnblocked(appliedRules, options, spentMs);
    const others = appliedRules.filter((each) => !isBlockedUnenforced(each));
    return this.#decideUnblocked(others, options, spentMs).then((decision) =>
      this.#withBlocked(decision, appliedRules, options),
    );
  }

  /**
   * Denies a request without waiting, if some of its rules certainly deny it: by a limit of 0, by an
   * operator's block, or from memory. Never throws.
   *
   * @param appliedRules the rules whose client and tier are known. The cost may be the lowest possible one
   * @returns undefined if the request must be decided by all of its rules
   */
  denialOf(appliedRules: readonly AppliedRule[]): Limited | undefined {
    try {
      const groups = emptyGroups();
      for (const each of appliedRules) {
        if (isBlockedUnenforced(each)) continue;
        addToGroups(groups, ruleCountersOf(each, this.#config.prefix));
      }
      const denial = this.#certainDenialOf(groups.enforced);
      if (!denial) return undefined;
      const shadow =
        groups.shadow.length > 0
          ? [this.#decideShadowGroups(groups.shadow, true).then(({ results }) => results)]
          : [];
      return this.#withBlocked({ ...denial, shadow }, appliedRules);
    } catch {
      // The complete decision reports the error.
      return undefined;
    }
  }

  /**
   * Charges the rules that have admitted the request, with one call to the store. If a reserve was
   * charged, charges or gives back only the difference. A rule in shadow mode is charged after the store
   * has decided it, because its reserve is not known before.
   *
   * @param decision if this isolate decided alone, only the counters in its memory are charged
   * @returns the updated quotas of the enforced rules that were charged in the store
   * @throws {StoreError} if the call to the store failed; it may have charged the counters anyway
   */
  async chargeResponse(
    { verdicts, storeFailure }: Pick<Allowed, "verdicts" | "storeFailure">,
    costOf: CostOf,
  ): Promise<Quota[]> {
    const isShadow = ({ appliedRule }: RuleVerdict) => appliedRule.rule.mode === "shadow";
    const shadowVerdicts = verdicts.filter((each) => isShadow(each) && mayBeCharged(each));
    if (shadowVerdicts.length > 0) {
      this.#background(this.#chargeShadowRules(shadowVerdicts, costOf).catch(() => {}));
    }
    const charges = responseChargesOf(
      verdicts.filter((each) => !isShadow(each)),
      costOf,
    );
    if (charges.length === 0) return [];
    if (storeFailure) {
      await this.#fallback.charge(charges);
      return [];
    }
    try {
      return await this.#charge(charges);
    } catch (error) {
      // This isolate has not charged the reserves, so it gives nothing back.
      await this.#fallback.charge(charges.filter(({ cost }) => cost > 0));
      throw error;
    }
  }

  /**
   * Charges or gives back the difference between the used quota and a reserve. Throws like
   * `chargeResponse`.
   *
   * @param cost the difference; negative if quota is given back
   */
  settle(appliedRule: AppliedRule, reserve: Reserve, cost: number): Promise<Quota[]> {
    return this.#charge([{ verdict: { appliedRule, reserve }, cost }]);
  }

  /** Gives quota back, at most as much as was used. Throws like `chargeResponse`. */
  refund(appliedRule: AppliedRule, quota: number): Promise<Quota[]> {
    return this.#adjust(ruleCountersOf(appliedRule, this.#config.prefix, { cost: -quota }));
  }

  #withBlocked<D extends Decision>(
    decision: D,
    appliedRules: readonly AppliedRule[],
    options?: DecideOptions,
  ): D {
    const blocked = appliedRules.filter(isBlockedUnenforced);
    const groups = blocked.map((each) => ruleCountersOf(each, this.#config.prefix, options));
    return withBlocked(decision, groups, this.#time());
  }

  /** @returns undefined if only the store can tell whether the enforced rules deny the request */
  #certainDenialOf(enforced: readonly RuleCounter[]): Limited | undefined {
    if (enforced.length === 0) return undefined;
    const denial = certainDenialOf(enforced, this.#time());
    if (denial) return denial;
    const answer = this.#store.denialOf?.(countersOf(enforced), this.#now());
    const decision = answer && decisionOf(answer, enforced);
    return decision?.outcome === "limited" ? decision : undefined;
  }

  async #decideUnblocked(
    appliedRules: readonly AppliedRule[],
    options: DecideOptions | undefined,
    spentMs: number,
  ): Promise<Decision> {
    const { prefix } = this.#config;
    const groups = emptyGroups();
    const { enforced, shadow } = groups;
    let lateRules: AppliedRule[] | undefined;
    for (const appliedRule of appliedRules) {
      if (appliedRule.later) {
        lateRules ??= [];
        lateRules.push(appliedRule);
      } else {
        addToGroups(groups, ruleCountersOf(appliedRule, prefix, options));
      }
    }
    // A denial from memory must be known before the store is called for rules in shadow mode.
    const denial =
      shadow.length > 0 || lateRules
        ? this.#certainDenialOf(enforced)
        : certainDenialOf(enforced, this.#time());
    const pendingVerdicts: RuleVerdict[] = [];
    const pendingResults = (lateRules ?? []).map((each) => {
      const decided = this.#decideShadowRule(each, options, denial !== undefined);
      const verdicts = decided.then((late) => late.verdicts);
      for (const undecided of verdictsSaying("undecided", [each])) {
        pendingVerdicts.push({ ...undecided, later: verdicts });
      }
      return decided.then(({ results }) => results);
    });
    if (denial) {
      if (shadow.length > 0) {
        pendingResults.push(this.#decideShadowGroups(shadow, true).then(({ results }) => results));
      }
      return { ...denial, shadow: pendingResults };
    }
    try {
      const restMs = this.#restMs(appliedRules, spentMs);
      const decision = await this.#decideGroups(groups, restMs);
      if (pendingResults.length === 0) return decision;
      const results = [...decision.shadow, ...pendingResults];
      if (decision.outcome === "limited") return { ...decision, shadow: results };
      return {
        ...decision,
        shadow: results,
        verdicts: [...decision.verdicts, ...pendingVerdicts],
      };
    } catch (error) {
      const rules = appliedRules.map(({ rule }) => rule);
      const undecided = toUndecided(error, rules);
      if (!this.#fallback.covers(rules)) return undecided;
      return this.#fallback.decideLocally(appliedRules, undecided, options);
    }
  }

  /** Returns the Worker's time; undefined if the store's clock determines the windows. */
  #now(): number | undefined {
    return timeOf(this.#config, this.#time());
  }

  /**
   * Decides groups with at most one call. Waits only for the enforced rules, and for the rules with the mode
   * `mark`.
   *
   * @param restMs the deadline, if it is shorter than the store's own
   * @throws {StoreError} if the enforced rules could not be decided
   */
  async #decideGroups(
    groups: CounterGroups,
    restMs: number | undefined,
  ): Promise<Allowed | Limited> {
    const { enforced, shadow, marks } = groups;
    const storeGroups = storeGroupsOf(groups);
    const now = this.#now();
    const answers = storeGroups.length > 0 ? this.#store.decide(storeGroups, now) : [];
    const timed =
      restMs === undefined ? answers : answers.map((answer) => inTime(() => answer, restMs));
    const own = timed.slice(0, timed.length - shadow.length - marks.length);
    const shadowAnswers = timed.slice(own.length, own.length + shadow.length);
    const markAnswers = timed.slice(own.length + shadow.length);
    // After a denial, nobody waits for the marks.
    for (const answer of markAnswers) answer.catch(() => {});
    const results = shadow.map((each, at) =>
      shadowResultsOf(each, shadowAnswers[at] as Promise<Answer>),
    );
    const verdicts = shadow.flatMap((each, at) =>
      shadowVerdictsOf(each, shadowAnswers[at] as Promise<Answer>),
    );
    const answer = await own[0];
    const decided = answer
      ? decisionOf(answer, enforced)
      : ({ ...NO_ENFORCED_RULE, shadow: [] } satisfies Allowed);
    if (decided.outcome === "limited") return withShadow(decided, results);
    const decision =
      verdicts.length > 0 ? { ...decided, verdicts: [...decided.verdicts, ...verdicts] } : decided;
    return withShadow(
      marks.length > 0 ? await withMarks(decision, marks, markAnswers) : decision,
      results,
    );
  }

  /**
   * Returns the time that is left until the decision's deadline, but at least half of the whole time;
   * undefined if nearly the whole time is left.
   */
  #restMs(appliedRules: readonly AppliedRule[], spentMs: number): number | undefined {
    const { timeoutMs } = this.#config;
    const reservedMs = this.#fallback.reservedMs(appliedRules);
    if (reservedMs === 0 && spentMs <= timeoutMs * NEGLIGIBLE_SHARE) return undefined;
    return Math.max(timeoutMs / 2, timeoutMs - spentMs - reservedMs);
  }

  /** Decides a rule in shadow mode whose client is identified later. Never rejects. */
  async #decideShadowRule(
    { rule, later }: AppliedRule,
    options: DecideOptions | undefined,
    isDenied: boolean,
  ): Promise<ShadowDecision> {
    try {
      const appliedRules = (await later) ?? [];
      const { prefix } = this.#config;
      const groups = appliedRules.map((each) => ruleCountersOf(each, prefix, options));
      const others = groups.filter((group) => !isBlocked(group));
      const { results, verdicts } = await this.#decideShadowGroups(others, isDenied);
      return { results: [...blockedInShadow(groups, this.#time()), ...results], verdicts };
    } catch (error) {
      return { results: [ruleUndecided(rule, error)], verdicts: [] };
    }
  }

  /**
   * Decides rules in shadow mode in a separate call. Never rejects.
   *
   * @param isDenied whether the request is denied without a call. Then the rules are decided only while
   * the isolate has made few such calls: see {@link SHADOW_CALLS}
   */
  async #decideShadowGroups(
    shadowGroups: readonly (readonly RuleCounter[])[],
    isDenied: boolean,
  ): Promise<ShadowDecision> {
    if (shadowGroups.length === 0 || (isDenied && !this.#takeShadowCall())) {
      return { results: [], verdicts: [] };
    }
    const answers = this.#store.decide(shadowGroups.map(countersOf), this.#now());
    const results = shadowGroups.map((each, at) =>
      shadowResultsOf(each, answers[at] as Promise<Answer>),
    );
    const verdicts = shadowGroups.flatMap((each, at) =>
      shadowVerdictsOf(each, answers[at] as Promise<Answer>),
    );
    const settled = await Promise.allSettled(answers);
    const isFromMemory = settled.every(
      (each) => each.status === "fulfilled" && each.value.fromMemory,
    );
    if (isDenied && isFromMemory) this.#shadowCalls = Math.max(0, this.#shadowCalls - 1);
    return {
      results: (await Promise.all(results)).flat(),
      verdicts: (await Promise.all(verdicts.map((each) => each.later ?? [each]))).flat(),
    };
  }

  /** Adds each counter's cost in the store, and returns the quotas. Throws like `chargeResponse`. */
  async #adjust(ruleCounters: readonly RuleCounter[]): Promise<Quota[]> {
    const now = this.#now();
    const tallies = await this.#store.adjust(countersOf(ruleCounters), now);
    return quotasOf(ruleCounters, { admitted: true, tallies, now: now ?? this.#time() });
  }

  /** Charges rules in shadow mode in a separate call. Its failure affects no enforced rule. */
  async #chargeShadowRules(verdicts: readonly RuleVerdict[], costOf: CostOf): Promise<void> {
    const decided = await Promise.all(verdicts.map((each) => each.later ?? [each]));
    const charges = responseChargesOf(decided.flat(), costOf);
    if (charges.length > 0) await this.#charge(charges);
  }

  #charge(charges: readonly ResponseCharge[]): Promise<Quota[]> {
    return this.#adjust(charges.flatMap((each) => chargedCountersOf(each, this.#config.prefix)));
  }

  /** Counts a call for rules in shadow mode. @returns false if the period has no call left */
  #takeShadowCall(): boolean {
    const period = Math.floor(this.#time() / SHADOW_PERIOD_MS);
    if (period !== this.#shadowPeriod) {
      this.#shadowPeriod = period;
      this.#shadowCalls = 0;
    }
    if (this.#shadowCalls >= SHADOW_CALLS) return false;
    this.#shadowCalls += 1;
    return true;
  }
}

function withShadow<D extends Allowed | Limited>(decision: D, shadow: ShadowResults): D {
  return shadow.length > 0 ? { ...decision, shadow } : decision;
}
