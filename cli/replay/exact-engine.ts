import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { certainTalliesOf } from "../../src/limiter/certain-denial.ts";
import {
  addToGroups,
  type CounterGroups,
  emptyGroups,
  storeGroupsOf,
} from "../../src/limiter/counter-groups.ts";
import { countersOf } from "../../src/limiter/counters.ts";
import { dependsOnResponse } from "../../src/limiter/rule-cost.ts";
import type { AppliedRule } from "../../src/request/applied-rule.ts";
import type { GroupAnswer } from "../../src/stores/store.ts";
import type { LogRequest } from "../logs/log-request.ts";
import { answersByMode, type GroupAnswers, recordAllReserves } from "./group-answers.ts";
import type { ReplayedRequest, StoreUsage } from "./replay-engine.ts";
import { chargedRulesOf, responseCountersOf } from "./response-charges.ts";
import { RowTable } from "./row-table.ts";
import type { LogRuleApplier } from "./rule-applier.ts";
import type { AppliedClient } from "./rule-clients.ts";
import { UsageMeter } from "./usage-meter.ts";
import { ReusedReplay } from "./verdicts.ts";

/** Decides requests one by one, as one store without delays and with the clock of the log. */
export class ExactEngine {
  readonly #applier: LogRuleApplier;
  readonly #prefix: string;
  readonly #rows = new RowTable();
  readonly #usage: UsageMeter;
  readonly #dependOnResponse: boolean;
  readonly #replayed = new ReusedReplay();

  constructor(config: Config, rules: readonly Rule[], applier: LogRuleApplier) {
    this.#applier = applier;
    this.#prefix = config.prefix;
    this.#usage = new UsageMeter(config);
    this.#dependOnResponse = rules.some(dependsOnResponse);
  }

  /** The number of live counters. */
  get rows(): number {
    return this.#rows.size;
  }

  finish(): StoreUsage {
    return this.#usage.total;
  }

  replay(requests: readonly LogRequest[], onDecided: (replayed: ReplayedRequest) => void): void {
    for (const request of requests) {
      this.#replayed.start(request);
      this.#decide(request, this.#replayed);
      onDecided(this.#replayed);
    }
  }

  #decide(request: LogRequest, replayed: ReusedReplay): void {
    const applied = this.#applier.apply(request);
    if (!applied) {
      replayed.outcome = "undecided";
      return;
    }
    const [first] = applied;
    if (!first) return;
    if (applied.length === 1 && first.isDecidedAlone) {
      replayed.finishAlone(first, this.#answerOf(first, request.at), request.at);
      return;
    }
    const groups = emptyGroups();
    for (const { ruleCounters } of applied) addToGroups(groups, ruleCounters);
    const answers = this.#answersOf(groups, request.at);
    replayed.finish(applied, answers, request.at);
    if (this.#dependOnResponse && replayed.outcome === "allowed") {
      recordAllReserves(groups, answers, request.at);
      this.#chargeResponse(request, chargedRulesOf(applied, answers));
    }
  }

  /** Decides the only rule of a request. */
  #answerOf({ counters }: AppliedClient, now: number): GroupAnswer {
    const answer = this.#rows.decideGroup(counters, now);
    this.#usage.addGroup(counters, answer);
    return answer;
  }

  /** Decides the groups with at most one call, as the Worker's limiter does. */
  #answersOf(groups: CounterGroups, now: number): GroupAnswers {
    const { enforced, shadow } = groups;
    const certainTallies = certainTalliesOf(enforced, now);
    const storeGroups = certainTallies ? shadow.map(countersOf) : storeGroupsOf(groups);
    const answers = this.#rows.decide(storeGroups, now);
    if (storeGroups.length > 0) this.#usage.addDecision(storeGroups, answers);
    if (certainTallies) {
      const denial = { admitted: false, tallies: certainTallies };
      return { enforced: denial, shadow: answers, marks: [] };
    }
    return answersByMode(groups, answers);
  }

  #chargeResponse(request: LogRequest, appliedRules: readonly AppliedRule[]): void {
    for (const counters of responseCountersOf(appliedRules, request, this.#prefix)) {
      const tallies = this.#rows.adjust(counters, request.at);
      this.#usage.addAdjustment(counters, tallies);
    }
  }
}
