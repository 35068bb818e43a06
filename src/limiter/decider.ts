import type { Config } from "../config/schema.ts";
import type { AppliedRule } from "../request/applied-rule.ts";
import { withDeadline } from "../stores/deadline.ts";
import type { Store } from "../stores/store.ts";
import { blockedInShadow, decideWithBlocked, isBlocked } from "./blocked.ts";
import { certainDenialOf } from "./certain-denial.ts";
import { timeOf } from "./clock.ts";
import { addToGroups, emptyGroups, storeGroupsOf } from "./counter-groups.ts";
import { countersOf, type DecideOptions, type RuleCounter, ruleCountersOf } from "./counters.ts";
import { type Decision, NO_ENFORCED_RULE, type ShadowResult, toUndecided } from "./decision.ts";
import type { Fallback } from "./fallback.ts";
import { ruleUndecided, withMarks } from "./marks.ts";
import { type RuleVerdict, verdictsSaying } from "./rule-verdict.ts";
import { decisionOf } from "./store-verdict.ts";

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

type DeciderConfig = Pick<Config, "clock" | "prefix" | "timeoutMs">;

/** Decides requests by the rules that apply to them. Loads in Node too. */
export class Decider {
  readonly #config: DeciderConfig;
  readonly #store: Store;
  readonly #fallback: Fallback;
  readonly #time: () => number;

  /** @param time returns this isolate's time, in milliseconds since the Unix epoch */
  constructor(
    config: DeciderConfig,
    store: Store,
    fallback: Fallback,
    time: () => number = () => Date.now(),
  ) {
    this.#config = config;
    this.#store = store;
    this.#fallback = fallback;
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
    return decideWithBlocked(
      appliedRules,
      (others) => this.#decide(others, options, spentMs),
      (appliedRule) => ruleCountersOf(appliedRule, this.#config.prefix, options),
      this.#time,
    );
  }

  async #decide(
    appliedRules: readonly AppliedRule[],
    options: DecideOptions | undefined,
    spentMs: number,
  ): Promise<Decision> {
    const { prefix } = this.#config;
    const groups = emptyGroups();
    const { enforced, shadow, marks } = groups;
    const pendingResults: Promise<readonly ShadowResult[]>[] = [];
    const pendingVerdicts: RuleVerdict[] = [];
    for (const appliedRule of appliedRules) {
      const { later } = appliedRule;
      if (later) {
        const decided = this.#decideShadowRule(appliedRule, later, options);
        pendingResults.push(decided.then(({ results }) => results));
        const verdicts = decided.then((each) => each.verdicts);
        for (const undecided of verdictsSaying("undecided", [appliedRule])) {
          pendingVerdicts.push({ ...undecided, later: verdicts });
        }
        continue;
      }
      addToGroups(groups, ruleCountersOf(appliedRule, prefix, options));
    }
    const denial = certainDenialOf(enforced, this.#time());
    if (denial) {
      if (shadow.length > 0) {
        pendingResults.push(this.#decideShadowGroups(shadow).then(({ results }) => results));
      }
      return { ...denial, shadow: pendingResults };
    }
    const storeGroups = storeGroupsOf(groups);
    if (storeGroups.length === 0) {
      return { ...NO_ENFORCED_RULE, shadow: pendingResults, verdicts: pendingVerdicts };
    }
    try {
      const store = this.#storeInTime(appliedRules, spentMs);
      const verdict = await store.decide(storeGroups, this.#now());
      const ownDecision = decisionOf(verdict, enforced, shadow);
      const decision =
        marks.length > 0 && ownDecision.outcome === "allowed"
          ? await withMarks(ownDecision, marks, verdict)
          : ownDecision;
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
      return this.#fallback.decide(appliedRules, undecided, options);
    }
  }

  /** Returns the Worker's time; undefined if the store's clock determines the windows. */
  #now(): number | undefined {
    return timeOf(this.#config, this.#time());
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
  ): Promise<ShadowDecision> {
    try {
      const appliedRules = await later;
      const { prefix } = this.#config;
      const groups = appliedRules.map((each) => ruleCountersOf(each, prefix, options));
      const { results, verdicts } = await this.#decideShadowGroups(
        groups.filter((group) => !isBlocked(group)),
      );
      return { results: [...blockedInShadow(groups, this.#time()), ...results], verdicts };
    } catch (error) {
      return { results: [ruleUndecided(rule, error)], verdicts: [] };
    }
  }

  /** Decides rules in shadow mode in a separate call. Never rejects. */
  async #decideShadowGroups(
    shadowGroups: readonly (readonly RuleCounter[])[],
  ): Promise<ShadowDecision> {
    if (shadowGroups.length === 0) return { results: [], verdicts: [] };
    try {
      const verdict = await this.#store.decide(shadowGroups.map(countersOf), this.#now());
      const decision = decisionOf(verdict, [], shadowGroups);
      const verdicts = decision.outcome === "allowed" ? decision.verdicts : [];
      return {
        results: (await Promise.all(decision.shadow)).flat(),
        verdicts: (await Promise.all(verdicts.map((each) => each.later ?? [each]))).flat(),
      };
    } catch (error) {
      const undecided = ([first]: readonly RuleCounter[]) =>
        ruleUndecided((first as RuleCounter).rule, error);
      return { results: shadowGroups.map(undecided), verdicts: [] };
    }
  }
}
