import { hasConcurrent } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { MAX_COUNT, type ReadRow } from "../../src/engine/counter.ts";
import { adjustGroup, decideGroup } from "../../src/engine/fixed-window.ts";
import { countsSlots, openSlots } from "../../src/engine/slots.ts";
import { certainTalliesOf } from "../../src/limiter/blocked.ts";
import { dependsOnResponse, type RuleCounter, waits } from "../../src/limiter/counters.ts";
import { quotasOf } from "../../src/limiter/decision.ts";
import { MAX_WAITING_FOR_ONE } from "../../src/limiter/waiting-room.ts";
import type { LogFacts, LogRequest } from "../logs/log-request.ts";
import { type ReportNote, waitedNote, withoutDurationNote } from "../logs/needs.ts";
import { chooseRules, type RuleChoice, replayedRuleOf } from "./choose-rules.ts";
import {
  type AppliedClient,
  added,
  type ClientGroup,
  type GroupAnswer,
  groupsOf,
  isEnforcedGroup,
  keyedCountersOf,
  NONE,
  type ReplayedRequest,
  replayedRequestOf,
  responseCountersOf,
  SKIPPED,
} from "./groups.ts";
import { arePlain, decidePlain } from "./plain-rules.ts";
import type { ReplayedRule } from "./report.ts";
import { RowTable } from "./row-table.ts";
import { evenShares, LogRuleApplier } from "./rule-applier.ts";
import { type StoreUsage, UsageMeter } from "./usage.ts";

/**
 * Decides requests one by one by the rules of one configuration, like a store without delays and with the clock of
 * the log.
 */
export class ReplayEngine {
  readonly rules: readonly ReplayedRule[];
  readonly leftOut: RuleChoice["leftOut"];
  /** The rows of rules that are not plain. */
  readonly rows = new RowTable();
  readonly #notes: readonly ReportNote[];
  readonly applier: LogRuleApplier;
  readonly #prefix: string;
  readonly #usage: UsageMeter;
  readonly #dependOnResponse: boolean;
  readonly #countSlots: boolean;
  /** The number of requests that take a slot for an unknown time. */
  #withoutDuration = 0;
  /** The number of requests that wait for their turn, and the longest wait. */
  #waited = 0;
  #longestWaitMs = 0;

  /**
   * @param missingAsAbsent whether values that the log lacks are absent; otherwise, rules that need them are left out
   * @param random returns a number from 0 to less than 1, to choose between shards
   */
  constructor(config: Config, facts: LogFacts, missingAsAbsent = false, random = evenShares()) {
    const { rules, leftOut, notes } = chooseRules(config, facts, missingAsAbsent);
    this.rules = rules.map(replayedRuleOf);
    this.leftOut = leftOut;
    // The store in memory costs nothing, so a note about its calls would not help.
    this.#notes = config.store === "memory" ? notes : [...notes, EXACT_CALLS];
    this.applier = new LogRuleApplier(config, rules, facts, missingAsAbsent, random);
    this.#prefix = config.prefix;
    this.#usage = new UsageMeter(config);
    this.#dependOnResponse = rules.some(dependsOnResponse);
    this.#countSlots = rules.some(hasConcurrent);
  }

  /** The assumptions and omissions. Some notes appear only after the requests that cause them. */
  get notes(): ReportNote[] {
    const notes = [...this.#notes, ...this.applier.rules.notes()];
    if (this.#withoutDuration > 0) notes.push(withoutDurationNote(this.#withoutDuration));
    if (this.#waited > 0) notes.push(waitedNote(this.#waited, this.#longestWaitMs));
    return notes;
  }

  get usage(): StoreUsage {
    return this.#usage.total;
  }

  /** Decides a request. The requests come in the order of their times. */
  decide(request: LogRequest): ReplayedRequest {
    const applied = this.applier.apply(request);
    if (!applied) return { request, outcome: "undecided", verdicts: [] };
    if (applied.length === 0) return { request, outcome: "unmatched", verdicts: [] };
    const groups = groupsOf(applied);
    const answers = this.#answersOf(groups, request);
    if (this.#countSlots && request.durationMs === undefined && applied.some(takesSlot)) {
      this.#withoutDuration++;
    }
    const replayed = replayedRequestOf(request, groups, answers);
    if (this.#dependOnResponse && replayed.outcome === "allowed") {
      this.#chargeResponse(request, groups, answers);
    }
    return replayed;
  }

  /** Decides the groups with at most one call, as the Worker's limiter does. */
  #answersOf(
    groups: readonly ClientGroup[],
    { at: now, durationMs = 0 }: LogRequest,
  ): readonly GroupAnswer[] {
    const certain = certainDenialOf(groups, now);
    let isDenied = certain !== undefined;
    let openMs = isDenied ? 0 : durationMs;
    let answers: GroupAnswer[] = NONE;
    for (const group of groups) {
      const isFirst = answers.length === 0;
      const isSkipped = isDenied && group[0]?.rule.mode === "mark";
      const answer =
        isFirst && certain ? certain : isSkipped ? SKIPPED : this.#decideGroup(group, now, openMs);
      if (isFirst && !answer.admitted) isDenied = isEnforcedGroup(group);
      if (isDenied) openMs = 0;
      answers = added(answers, answer);
    }
    if (certain) {
      const isCalled = (_: unknown, index: number) => groups[index]?.[0]?.rule.mode === "shadow";
      this.#usage.addClients(groups.filter(isCalled), answers.filter(isCalled));
    } else {
      this.#usage.addClients(groups, answers);
      if (this.#countSlots) this.#usage.addSlots(groups, answers, openMs);
    }
    return answers;
  }

  /** @param openMs how long the request is open if the group is admitted */
  #decideGroup(group: ClientGroup, now: number, openMs: number): GroupAnswer {
    if (arePlain(group)) return decidePlain(group, now);
    const read: ReadRow = (key) => this.rows.read(key, now);
    const ruleCounters = keyedCountersOf(group);
    const waiting = ruleCounters.filter(({ rule }) => waits(rule));
    const slotMs = waiting.length > 0 ? waitForSlotMs(waiting, now, read) : 0;
    // A slot expires when its request ends, so nothing has to give it back. A request that waits for a slot takes one
    // that begins later.
    const counters = ruleCounters.map(({ counter, rule }) => {
      if (!countsSlots(counter)) return counter;
      const ceiling = slotMs > 0 && waits(rule) ? MAX_COUNT : counter.ceiling;
      return { ...counter, ceiling, windowMs: slotMs + openMs };
    });
    const { verdict, writes } = decideGroup(counters, now, read);
    this.rows.write(writes, now);
    if (verdict.admitted && waiting.length > 0) {
      const quotas = quotasOf(ruleCounters, { ...verdict, now });
      this.#addWait(Math.max(slotMs, ...quotas.map((quota) => quota.reservationDelayMs)));
    }
    return verdict;
  }

  #addWait(ms: number): void {
    if (ms > 0) this.#waited++;
    this.#longestWaitMs = Math.max(this.#longestWaitMs, ms);
  }

  #chargeResponse(
    request: LogRequest,
    groups: readonly ClientGroup[],
    answers: readonly GroupAnswer[],
  ): void {
    const { at } = request;
    for (const counters of responseCountersOf(request, groups, answers, this.#prefix)) {
      const { tallies, writes } = adjustGroup(counters, at, (key) => this.rows.read(key, at));
      this.rows.write(writes, at);
      this.#usage.addAdjustment(counters, tallies);
    }
  }
}

/**
 * Returns the time in milliseconds until a request gets its slots, after all requests that wait already; 0 if this is
 * longer than `wait`, or if too many requests wait, so that the request is denied.
 */
function waitForSlotMs(waiting: readonly RuleCounter[], now: number, read: ReadRow): number {
  let longestMs = 0;
  for (const { counter, rule } of waiting) {
    if (!countsSlots(counter)) continue;
    const ends = openSlots(read(counter.key), now).map(([, end]) => end);
    const freeAt = ends.sort((a, b) => b - a)[counter.limit - 1] ?? now;
    const before = ends.length - counter.limit;
    if (freeAt - now > rule.waitMs || before >= MAX_WAITING_FOR_ONE) return 0;
    longestMs = Math.max(longestMs, freeAt - now);
  }
  return longestMs;
}

function takesSlot({ ruleCounters }: AppliedClient): boolean {
  return ruleCounters.some(({ counter }) => countsSlots(counter));
}

const EXACT_CALLS: ReportNote = {
  code: "calls-without-leases",
  text: "Each decision counts as one call to the store. Leases and the denial cache of a Worker make fewer calls.",
};

/** Returns the denial of the enforced rules if one of them has a limit of 0, so that no store is called. */
function certainDenialOf([first]: readonly ClientGroup[], now: number): GroupAnswer | undefined {
  if (!first || !isEnforcedGroup(first) || arePlain(first)) return undefined;
  const tallies = certainTalliesOf(keyedCountersOf(first), now);
  return tallies && { admitted: false, tallies };
}
