import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { adjustGroup, decideGroup } from "../../src/engine/fixed-window.ts";
import { certainTalliesOf } from "../../src/limiter/blocked.ts";
import { countersOf, dependsOnResponse } from "../../src/limiter/counters.ts";
import type { LogRequest } from "../logs/log-request.ts";
import {
  type AppliedClient,
  type ClientGroup,
  type GroupAnswer,
  groupsOf,
  isEnforcedGroup,
  keyedCountersOf,
  type ReplayedRequest,
  replayedRequestOf,
  responseCountersOf,
  SKIPPED,
} from "./groups.ts";
import { decidePlain, PlainClient } from "./plain-rules.ts";
import type { RowTable } from "./row-table.ts";
import type { LogRuleApplier } from "./rule-applier.ts";
import { type StoreUsage, UsageMeter } from "./usage.ts";

/** Decides requests one by one, as one store without delays and with the clock of the log. */
export class ExactEngine {
  readonly #applier: LogRuleApplier;
  readonly #prefix: string;
  readonly #rows: RowTable;
  readonly #usage: UsageMeter;
  readonly #dependOnResponse: boolean;

  /** @param rows has the rows of rules that are not plain */
  constructor(config: Config, rules: readonly Rule[], applier: LogRuleApplier, rows: RowTable) {
    this.#applier = applier;
    this.#rows = rows;
    this.#prefix = config.prefix;
    this.#usage = new UsageMeter(config);
    this.#dependOnResponse = rules.some(dependsOnResponse);
  }

  replay(requests: readonly LogRequest[], onDecided: (replayed: ReplayedRequest) => void): void {
    for (const request of requests) onDecided(this.#replayed(request));
  }

  finish(): StoreUsage {
    return this.#usage.total;
  }

  #replayed(request: LogRequest): ReplayedRequest {
    const applied = this.#applier.apply(request);
    if (!applied) return { request, outcome: "undecided", verdicts: [] };
    if (applied.length === 0) return { request, outcome: "unmatched", verdicts: [] };
    const groups = groupsOf(applied);
    const answers = this.#answersOf(groups, request.at);
    const replayed = replayedRequestOf(request, groups, answers, request.at);
    if (this.#dependOnResponse && replayed.outcome === "allowed") {
      this.#chargeResponse(request, groups, answers);
    }
    return replayed;
  }

  /** Decides the groups with at most one call, as the Worker's limiter does. */
  #answersOf(groups: readonly ClientGroup[], now: number): readonly GroupAnswer[] {
    const certain = certainDenialOf(groups, now);
    let isDenied = certain !== undefined;
    const answers: GroupAnswer[] = [];
    for (const group of groups) {
      const isFirst = answers.length === 0;
      const isSkipped = isDenied && group[0]?.rule.mode === "mark";
      const answer =
        isFirst && certain ? certain : isSkipped ? SKIPPED : this.#decideGroup(group, now);
      if (isFirst && !answer.admitted) isDenied = isEnforcedGroup(group);
      answers.push(answer);
    }
    if (certain) {
      const isCalled = (_: unknown, index: number) => groups[index]?.[0]?.rule.mode === "shadow";
      this.#usage.addClients(groups.filter(isCalled), answers.filter(isCalled));
    } else this.#usage.addClients(groups, answers);
    return answers;
  }

  #decideGroup(group: ClientGroup, now: number): GroupAnswer {
    if (arePlain(group)) return decidePlain(group, now);
    const plain = group.filter((client) => client instanceof PlainClient);
    const read = (key: string) => {
      for (const client of plain) {
        const row = client.read(key);
        if (row) return row;
      }
      return this.#rows.read(key, now);
    };
    const { verdict, writes } = decideGroup(countersOf(keyedCountersOf(group)), now, read);
    const others = [...writes].filter(
      ([key, row]) => !plain.some((client) => row && client.write(key, row)),
    );
    this.#rows.write(new Map(others), now);
    return verdict;
  }

  #chargeResponse(
    request: LogRequest,
    groups: readonly ClientGroup[],
    answers: readonly GroupAnswer[],
  ): void {
    const { at } = request;
    for (const counters of responseCountersOf(request, groups, answers, at, this.#prefix)) {
      const { tallies, writes } = adjustGroup(counters, at, (key) => this.#rows.read(key, at));
      this.#rows.write(writes, at);
      this.#usage.addAdjustment(counters, tallies);
    }
  }
}

function arePlain(group: readonly AppliedClient[]): group is readonly PlainClient[] {
  for (const client of group) if (!(client instanceof PlainClient)) return false;
  return true;
}

/** Returns the denial of the enforced rules if one of them has a limit of 0, so that no store is called. */
export function certainDenialOf(
  [first]: readonly ClientGroup[],
  now: number,
): GroupAnswer | undefined {
  if (!first || !isEnforcedGroup(first) || arePlain(first)) return undefined;
  const tallies = certainTalliesOf(keyedCountersOf(first), now);
  return tallies && { admitted: false, tallies };
}
