import type { Mode, Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import type { Demand } from "../../src/engine/counter.ts";
import { certainTalliesOf } from "../../src/limiter/blocked.ts";
import {
  chargedCountersOf,
  costOfHead,
  type FinalCost,
  responseChargesOf,
  withCause,
} from "../../src/limiter/cost.ts";
import {
  addToGroups,
  type CounterGroups,
  countersOf,
  dependsOnResponse,
  emptyGroups,
  storeGroupsOf,
} from "../../src/limiter/counters.ts";
import type { RuleVerdict } from "../../src/limiter/decision.ts";
import type { AppliedRule } from "../../src/request/rule-applier.ts";
import type { LogRequest } from "../logs/log-request.ts";
import { type AppliedClient, decideClients, newAnswer, RememberedClient } from "./clients.ts";
import { answersByMode, type GroupAnswers, SKIPPED, verdictsOfGroups } from "./group-answers.ts";
import type { ReplayedRequest, StoreUsage } from "./report.ts";
import type { RowTable } from "./row-table.ts";
import type { LogRuleApplier } from "./rule-applier.ts";
import { UsageMeter } from "./usage.ts";
import { ReusedReplay } from "./verdicts.ts";

/** A status that no response has and no rule counts. */
const NO_STATUS = 0;

/**
 * Returns the counters that a response charges, for each call of the Worker: the enforced rules and those
 * with the mode `mark` in one call, the rules in shadow mode in another.
 */
export function responseCountersOf(
  verdicts: readonly RuleVerdict[],
  request: LogRequest,
  prefix: string,
): Demand[][] {
  const isShadow = ({ appliedRule }: RuleVerdict) => appliedRule.rule.mode === "shadow";
  return [verdicts.filter((each) => !isShadow(each)), verdicts.filter(isShadow)]
    .map((each) => {
      const charges = responseChargesOf(each, (appliedRule) => finalCostOf(appliedRule, request));
      return charges.flatMap((charge) => countersOf(chargedCountersOf(charge, prefix)));
    })
    .filter((counters) => counters.length > 0);
}

function finalCostOf(appliedRule: AppliedRule, request: LogRequest): FinalCost {
  const { status = NO_STATUS, responseHeaders } = request;
  const headers = { get: (name: string) => responseHeaders?.get(name) ?? null };
  // A cost that a function of the user would read from the response is unknown.
  const cost = costOfHead(appliedRule, { status, headers }) ?? "missing";
  return status === NO_STATUS ? withCause(cost, "no-response") : cost;
}

/** Decides requests one by one, as one store without delays and with the clock of the log. */
export class ExactEngine {
  readonly #applier: LogRuleApplier;
  readonly #prefix: string;
  readonly #rows: RowTable;
  readonly #usage: UsageMeter;
  readonly #dependOnResponse: boolean;
  readonly #replayed = new ReusedReplay();
  readonly #answer = newAnswer();

  /** @param rows the table that gets the rows of the applier's clients */
  constructor(config: Config, rules: readonly Rule[], applier: LogRuleApplier, rows: RowTable) {
    this.#applier = applier;
    this.#rows = rows;
    this.#prefix = config.prefix;
    this.#usage = new UsageMeter(config);
    this.#dependOnResponse = rules.some(dependsOnResponse);
  }

  replay(requests: readonly LogRequest[], onDecided: (replayed: ReplayedRequest) => void): void {
    for (const request of requests) {
      this.#replayed.start(request);
      this.#decide(request, this.#replayed);
      onDecided(this.#replayed);
    }
  }

  finish(): StoreUsage {
    return this.#usage.total;
  }

  #decide(request: LogRequest, replayed: ReusedReplay): void {
    const applied = this.#applier.apply(request);
    if (!applied) {
      replayed.outcome = "undecided";
      return;
    }
    if (applied.length === 0) return;
    if (areRemembered(applied)) {
      this.#decideClients(applied, replayed, request.at);
      return;
    }
    const groups = emptyGroups();
    for (const client of applied) {
      if (client instanceof RememberedClient) this.#rows.prepare(client, request.at);
      addToGroups(groups, client.ruleCounters);
    }
    const answers = this.#answersOf(groups, request.at);
    replayed.finish(applied, answers, request.at);
    if (this.#dependOnResponse && replayed.outcome === "allowed") {
      this.#chargeResponse(request, verdictsOfGroups(groups, answers, request.at));
    }
  }

  /** Decides a request whose clients all have their rows themselves, as most requests are. */
  #decideClients(applied: readonly RememberedClient[], replayed: ReusedReplay, now: number): void {
    this.#rows.advance(now);
    const enforced = inMode(applied, "enforce");
    if (enforced.length === applied.length) {
      const answer = decideClients(applied, now, this.#answer);
      this.#usage.addClients([applied], [answer]);
      replayed.finishEnforced(applied, answer, now);
      return;
    }
    const decide = (clients: readonly RememberedClient[]) =>
      decideClients(clients, now, newAnswer());
    const [shadow, marks] = [inMode(applied, "shadow"), inMode(applied, "mark")];
    const answer = enforced.length > 0 ? decide(enforced) : undefined;
    const isDenied = answer && !answer.admitted;
    const answers = {
      enforced: answer,
      shadow: shadow.map((client) => decide([client])),
      marks: marks.map((client) => (isDenied ? SKIPPED : decide([client]))),
    };
    this.#usage.addClients(
      [...(answer ? [enforced] : []), ...[...shadow, ...marks].map((client) => [client])],
      [...(answer ? [answer] : []), ...answers.shadow, ...answers.marks],
    );
    replayed.finish(applied, answers, now);
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

  #chargeResponse(request: LogRequest, verdicts: readonly RuleVerdict[]): void {
    for (const counters of responseCountersOf(verdicts, request, this.#prefix)) {
      const tallies = this.#rows.adjust(counters, request.at);
      this.#usage.addAdjustment(counters, tallies);
    }
  }
}

function areRemembered(applied: readonly AppliedClient[]): applied is readonly RememberedClient[] {
  for (const client of applied) if (!(client instanceof RememberedClient)) return false;
  return true;
}

/** Returns the clients under rules with this mode; usually the same list. */
function inMode(clients: readonly RememberedClient[], mode: Mode): readonly RememberedClient[] {
  for (const { template } of clients) {
    if (template.rule.mode !== mode)
      return clients.filter((each) => each.template.rule.mode === mode);
  }
  return clients;
}
