import { type Tally, windowAt, windowEndingNear } from "../../src/engine/counter.ts";
import type { RuleCounter } from "../../src/limiter/counters.ts";
import { exceeds } from "../../src/limiter/decision.ts";
import type { LogRequest } from "../logs/log-request.ts";
import { type AppliedClient, RememberedClient } from "./clients.ts";
import type { GroupAnswer, GroupAnswers } from "./group-answers.ts";
import { NO_REQUEST } from "./logged-request.ts";
import type { ReplayedRequest, RuleVerdict } from "./report.ts";

/** A verdict whose fields change from request to request, so that a replay creates no objects. */
class ReusedVerdict implements RuleVerdict {
  rule = 0;
  client = "";
  denied = false;
  windowStart = 0;
  windowEnd = 0;
  policy = "";
}

/** A request with its verdicts, whose fields change from request to request. */
export class ReusedReplay implements ReplayedRequest {
  request: LogRequest = NO_REQUEST;
  outcome: ReplayedRequest["outcome"] = "unmatched";
  verdicts: readonly RuleVerdict[] = NONE;
  /** Verdicts for each number of rules. */
  readonly #pools: ReusedVerdict[][] = [];

  /** Begins the next request. */
  start(request: LogRequest): void {
    this.request = request;
    this.outcome = "unmatched";
    this.verdicts = NONE;
  }

  /** Sets the outcome and the verdicts of enforced rules that were decided as one group. */
  finishEnforced(applied: readonly RememberedClient[], answer: GroupAnswer, now: number): void {
    this.outcome = answer.admitted ? "allowed" : "limited";
    const pool = this.#poolOf(applied.length);
    let [next, position] = [0, 0];
    for (const { template, client } of applied) {
      const { index, ruleCounters } = template;
      const verdict = pool[next++] as ReusedVerdict;
      verdict.rule = index;
      verdict.client = client;
      setState(verdict, ruleCounters, answer, position, now);
      position += ruleCounters.length;
    }
    this.verdicts = pool;
  }

  /**
   * Sets the outcome and the verdicts of all rules, in the order in which they apply.
   *
   * @param now the time of the decision
   */
  finish(applied: readonly AppliedClient[], answers: GroupAnswers, now: number): void {
    const { enforced } = answers;
    this.outcome = enforced && !enforced.admitted ? "limited" : "allowed";
    const pool = this.#poolOf(applied.length);
    let [next, position, shadow, mark] = [0, 0, 0, 0];
    for (const each of applied) {
      const verdict = pool[next++] as ReusedVerdict;
      verdict.rule = each.rule;
      verdict.client = each.client;
      // Its own counters differ only in their keys, and a client may not have created them yet.
      const { ruleCounters } = each instanceof RememberedClient ? each.template : each;
      switch (ruleCounters[0]?.rule.mode) {
        case "shadow":
          setState(verdict, ruleCounters, answers.shadow[shadow++], 0, now);
          break;
        case "mark":
          setState(verdict, ruleCounters, answers.marks[mark++], 0, now);
          break;
        default:
          setState(verdict, ruleCounters, enforced, position, now);
          position += ruleCounters.length;
      }
    }
    this.verdicts = pool;
  }

  #poolOf(length: number): ReusedVerdict[] {
    const existing = this.#pools[length];
    if (existing) return existing;
    const pool = Array.from({ length }, () => new ReusedVerdict());
    this.#pools[length] = pool;
    return pool;
  }
}

const NONE: readonly RuleVerdict[] = [];

/**
 * Sets the verdict of one rule, and its window.
 *
 * @param answer the answer for the group of the rule; undefined if the rule was not decided
 * @param first the position of the rule's first counter in that group
 */
function setState(
  verdict: ReusedVerdict,
  ruleCounters: readonly RuleCounter[],
  answer: GroupAnswer | undefined,
  first: number,
  now: number,
): void {
  const denying = answer && !answer.admitted ? denyingIndex(ruleCounters, answer, first) : -1;
  const index = Math.max(0, denying);
  verdict.denied = denying !== -1;
  const tally = answer?.tallies[first + index];
  setWindow(verdict, ruleCounters[index] as RuleCounter, tally, now);
}

/** Returns the index of the first counter of a rule that has denied its group; -1 if none has. */
function denyingIndex(
  ruleCounters: readonly RuleCounter[],
  { tallies }: GroupAnswer,
  first: number,
): number {
  return ruleCounters.findIndex(({ counter }, index) => {
    const tally = tallies[first + index];
    return tally && exceeds(counter, tally);
  });
}

function setWindow(
  verdict: ReusedVerdict,
  { counter, window }: RuleCounter,
  tally: Tally | undefined,
  now: number,
): void {
  verdict.policy = window.policy;
  const endsAt = tally ? now + tally.resetMs : windowAt(now, counter).endsAt;
  verdict.windowEnd = endsAt;
  verdict.windowStart = counter.calendar
    ? windowEndingNear(endsAt, counter).startsAt
    : endsAt - counter.windowMs;
}
