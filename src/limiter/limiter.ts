import type { Config } from "../config/schema.ts";
import type { AppliedRule } from "../request/applied-rule.ts";
import { withDeadline } from "../stores/deadline.ts";
import type { Store } from "../stores/store.ts";
import { blockedInShadow, decideWithBlocked, isBlocked } from "./blocked.ts";
import { certainDenialOf } from "./certain-denial.ts";
import { Clients } from "./clients.ts";
import { countersOf, type DecideOptions, type RuleCounter, ruleCountersOf } from "./counters.ts";
import {
  type Decision,
  NO_ENFORCED_RULE,
  type Quota,
  type ShadowResult,
  toUndecided,
} from "./decision.ts";
import { createFallback, type Fallback } from "./fallback.ts";
import { ruleUndecided, withMarks } from "./marks.ts";
import type { NativeLimiter } from "./native-limiter.ts";
import type { Reserve } from "./reserves.ts";
import { type CostOf, ResponseCharger, timeOf } from "./response-charger.ts";
import { decisionOf } from "./store-verdict.ts";

/**
 * If identifying the client takes at most this part of the deadline, the store's deadline stays the
 * same. So most requests need no wrapper that shortens the deadline.
 */
const NEGLIGIBLE_SHARE = 0.05;

type LimiterConfig = Pick<Config, "clock" | "prefix" | "timeoutMs">;

/**
 * Decides requests by the rules that apply to them, and charges rules whose cost depends on the
 * response.
 */
export class Limiter {
  /** Reads and changes the stored states of clients. */
  readonly clients: Clients;
  readonly #config: LimiterConfig;
  readonly #store: Store;
  readonly #fallback: Fallback;
  readonly #responseCharger: ResponseCharger;

  /** @param nativeLimiter called for rules with `onError: "local"` if the store fails */
  constructor(config: LimiterConfig, store: Store, nativeLimiter?: NativeLimiter) {
    this.clients = new Clients(config, store);
    this.#config = config;
    this.#store = store;
    this.#fallback = createFallback(config, nativeLimiter);
    this.#responseCharger = new ResponseCharger(config, store, this.#fallback);
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
    return decideWithBlocked(
      appliedRules,
      (others) => this.#decide(others, options, spentMs),
      (appliedRule) => ruleCountersOf(appliedRule, this.#config.prefix, options),
    );
  }

  async #decide(
    appliedRules: readonly AppliedRule[],
    options: DecideOptions | undefined,
    spentMs: number,
  ): Promise<Decision> {
    const { prefix } = this.#config;
    // The enforced rules form one group, which is charged as a whole or not at all. Each other rule
    // forms its own group.
    const enforcedCounters: RuleCounter[] = [];
    const shadowGroups: RuleCounter[][] = [];
    const markGroups: RuleCounter[][] = [];
    const pendingResults: Promise<readonly ShadowResult[]>[] = [];
    for (const appliedRule of appliedRules) {
      const { later, rule } = appliedRule;
      if (later) {
        pendingResults.push(this.#decideShadowRule(appliedRule, later, options));
        continue;
      }
      const ruleCounters = ruleCountersOf(appliedRule, prefix, options);
      if (rule.mode === "shadow") shadowGroups.push(ruleCounters);
      else if (rule.mode === "mark") markGroups.push(ruleCounters);
      else enforcedCounters.push(...ruleCounters);
    }
    // After a denial, no rule with the mode `mark` is charged.
    const denial = certainDenialOf(enforcedCounters, Date.now());
    if (denial) {
      if (shadowGroups.length > 0) pendingResults.push(this.#decideShadowGroups(shadowGroups));
      return { ...denial, shadow: pendingResults };
    }
    const groups = [...shadowGroups, ...markGroups].map(countersOf);
    if (enforcedCounters.length > 0) groups.unshift(countersOf(enforcedCounters));
    if (groups.length === 0) return { ...NO_ENFORCED_RULE, shadow: pendingResults };
    try {
      const store = this.#storeInTime(appliedRules, spentMs);
      const verdict = await store.decide(groups, this.#now());
      const ownDecision = decisionOf(verdict, enforcedCounters, shadowGroups);
      const decision =
        markGroups.length > 0 && ownDecision.outcome === "allowed"
          ? await withMarks(ownDecision, markGroups, verdict)
          : ownDecision;
      if (pendingResults.length === 0) return decision;
      return { ...decision, shadow: [...decision.shadow, ...pendingResults] };
    } catch (error) {
      const rules = appliedRules.map(({ rule }) => rule);
      const undecided = toUndecided(error, rules);
      if (!this.#fallback.covers(rules)) return undecided;
      return this.#fallback.decide(appliedRules, undecided, options);
    }
  }

  /** Charges the rules whose cost depends on the response: see {@link ResponseCharger}. */
  chargeResponse(
    appliedRules: readonly AppliedRule[],
    costOf: CostOf,
    countedLocally = false,
    shadow: readonly unknown[] = [],
  ): Promise<Quota[]> {
    return this.#responseCharger.charge(appliedRules, costOf, countedLocally, shadow);
  }

  /** Settles a reserve that a program has taken: see {@link ResponseCharger}. */
  settle(appliedRule: AppliedRule, reserve: Reserve, cost: number): Promise<Quota[]> {
    return this.#responseCharger.settle(appliedRule, reserve, cost);
  }

  /** Gives quota back, at most as much as was used. Throws like {@link Limiter.chargeResponse}. */
  refund(appliedRule: AppliedRule, quota: number): Promise<Quota[]> {
    return this.#responseCharger.adjust(
      ruleCountersOf(appliedRule, this.#config.prefix, { cost: -quota }),
    );
  }

  /**
   * Removes a client's counts and reservations under a rule, and its ban. Throws like
   * {@link Limiter.chargeResponse}.
   */
  reset(appliedRule: AppliedRule): Promise<void> {
    return this.clients.reset(appliedRule);
  }

  /** Returns the Worker's time; undefined if the store's clock determines the windows. */
  #now(): number | undefined {
    return timeOf(this.#config);
  }

  /**
   * Returns the store with a shorter deadline. The store gets the time that is left until the
   * decision's deadline, but at least half of the whole time.
   */
  #storeInTime(appliedRules: readonly AppliedRule[], spentMs: number): Store {
    const { timeoutMs } = this.#config;
    const reservedMs = this.#fallback.reservedMs(appliedRules);
    if (reservedMs === 0 && spentMs <= timeoutMs * NEGLIGIBLE_SHARE) return this.#store;
    return withDeadline(this.#store, Math.max(timeoutMs / 2, timeoutMs - spentMs - reservedMs));
  }

  /** Decides a rule in shadow mode whose client is identified later. Never rejects. */
  async #decideShadowRule(
    { rule }: AppliedRule,
    later: Promise<readonly AppliedRule[]>,
    options: DecideOptions | undefined,
  ): Promise<readonly ShadowResult[]> {
    try {
      const appliedRules = await later;
      const { prefix } = this.#config;
      const groups = appliedRules.map((each) => ruleCountersOf(each, prefix, options));
      const decided = await this.#decideShadowGroups(groups.filter((group) => !isBlocked(group)));
      return [...blockedInShadow(groups, Date.now()), ...decided];
    } catch (error) {
      return [ruleUndecided(rule, error)];
    }
  }

  /** Decides rules in shadow mode in a separate call. Never rejects. */
  async #decideShadowGroups(
    shadowGroups: readonly (readonly RuleCounter[])[],
  ): Promise<readonly ShadowResult[]> {
    if (shadowGroups.length === 0) return [];
    try {
      const verdict = await this.#store.decide(shadowGroups.map(countersOf), this.#now());
      const { shadow } = decisionOf(verdict, [], shadowGroups);
      return (await Promise.all(shadow)).flat();
    } catch (error) {
      return shadowGroups.map(([first]) => ruleUndecided((first as RuleCounter).rule, error));
    }
  }
}
