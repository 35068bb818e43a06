import { type Tally, windowAt, windowEndingNear } from "../../src/engine/counter.ts";
import type { RuleCounter } from "../../src/limiter/counters.ts";
import { exceeds } from "../../src/limiter/quotas.ts";
import type { GroupAnswer } from "../../src/stores/store.ts";
import type { LogRequest } from "../logs/log-request.ts";
import type { GroupAnswers } from "./group-answers.ts";
import { NO_REQUEST } from "./logged-request.ts";
import type { ReplayedRequest, RuleVerdict } from "./replay-engine.ts";
import type { AppliedClient } from "./rule-clients.ts";

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
  readonly verdicts: RuleVerdict[] = [];
  readonly #pool: ReusedVerdict[] = [];

  /** Begins the next request. */
  start(request: LogRequest): void {
    this.request = request;
    this.outcome = "unmatched";
    this.verdicts.length = 0;
  }

  /** Sets the outcome and the verdicts of all rules, in the order in which they apply. */
  finish(applied: readonly AppliedClient[], answers: GroupAnswers): void {
    const { enforced } = answers;
    this.outcome = enforced && !enforced.admitted ? "limited" : "allowed";
    let [position, shadow, mark] = [0, 0, 0];
    for (const each of applied) {
      switch (each.appliedRule.rule.mode) {
        case "shadow":
          this.#add(each, answers.shadow[shadow++], 0);
          break;
        case "mark":
          this.#add(each, answers.marks[mark++], 0);
          break;
        default:
          this.#add(each, enforced, position);
          position += each.ruleCounters.length;
      }
    }
  }

  /**
   * Adds the verdict of one rule.
   *
   * @param answer the answer for the group of the rule; undefined if the rule was not decided
   * @param first the position of the rule's first counter in that group
   */
  #add(
    { ruleCounters, rule, client }: AppliedClient,
    answer: GroupAnswer | undefined,
    first: number,
  ) {
    const denying =
      !answer || answer.admitted
        ? -1
        : ruleCounters.findIndex(({ counter }, index) => {
            const tally = answer.tallies[first + index];
            return tally && exceeds(counter, tally);
          });
    const index = Math.max(0, denying);
    const verdict = this.#next();
    verdict.rule = rule;
    verdict.client = client;
    verdict.denied = denying !== -1;
    const tally = answer?.tallies[first + index];
    setWindow(verdict, ruleCounters[index] as RuleCounter, tally, this.request.at);
  }

  #next(): ReusedVerdict {
    const used = this.verdicts.length;
    const verdict = this.#pool[used] ?? new ReusedVerdict();
    this.#pool[used] = verdict;
    this.verdicts.push(verdict);
    return verdict;
  }
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
