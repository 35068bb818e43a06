import type { Mode, Rule } from "../../src/config/rule.ts";
import { type Adjustment, type Windows, windowAt, windowStart } from "../../src/engine/counter.ts";
import { countsSlots } from "../../src/engine/slots.ts";
import {
  chargedCountersOf,
  costOfHead,
  type FinalCost,
  responseChargesOf,
  withCause,
} from "../../src/limiter/cost.ts";
import { countersOf, quotaCounters, type RuleCounter } from "../../src/limiter/counters.ts";
import { exceeds, verdictsOf } from "../../src/limiter/decision.ts";
import type { AppliedRule } from "../../src/request/rule-applier.ts";
import type { Answer } from "../../src/stores/store.ts";
import type { LogRequest } from "../logs/log-request.ts";
import type { CountedClient } from "./client-table.ts";

// The groups of counters of one request, and the verdicts that their answers give. The limiter (src/limiter/limiter.ts)
// needs promises for this, and does not return the windows and clients that reports show.

/** The verdict of one rule on one request. */
export interface RuleVerdict {
  /** The index of the rule in `ReplayEngine.rules`. */
  readonly rule: number;
  /**
   * The client under this rule: the values of its key, in clear, such as `203.0.113.7` or
   * `203.0.113.7, /login`. Values that may be credentials are shortened to a few characters and a hash.
   */
  readonly client: string;
  /** Whether the request exceeds a limit of this rule, in whatever mode. */
  readonly denied: boolean;
  /**
   * The start of the first window that denied, or of the rule's first window; milliseconds since the Unix epoch. With
   * `start: "spread"`, each client's windows start at another time. This field then has the start without that offset.
   * `concurrent` has no windows, so minutes take their place.
   */
  readonly windowStart: number;
  readonly windowEnd: number;
  /** The policy of this window, such as `search/1m`. */
  readonly policy: string;
  /** The number of the client's open requests, with this one if it was admitted; undefined without `concurrent`. */
  readonly open?: number | undefined;
  /** The client. Under a plain rule, many requests share this object. */
  readonly counted: CountedClient;
}

/** A request with the verdicts of all rules that match it. */
export interface ReplayedRequest {
  readonly request: LogRequest;
  /** The outcome for the client: only enforced rules deny. `unmatched`: no rule applies. */
  readonly outcome: "allowed" | "limited" | "undecided" | "unmatched";
  readonly verdicts: readonly RuleVerdict[];
}

/** A rule that counts a request, for one client. */
export interface AppliedClient extends CountedClient {
  readonly rule: Rule;
  /** The index of the rule among the replayed rules. */
  readonly index: number;
  /** The client, as reports show it. */
  readonly text: string;
  /** The counters. All clients of a plain rule share these objects, so the keys may lack the identity. */
  readonly ruleCounters: readonly RuleCounter[];
  /** The counters with the client's keys. */
  readonly keyedCounters: readonly RuleCounter[];
}

/** The rules that a store decides as one group. */
export type ClientGroup = readonly AppliedClient[];

/** The answer for a group, at the time of its request. */
export type GroupAnswer = Pick<Answer, "admitted" | "tallies">;

/** The answer for a group with the mode `mark` after a denial, which isolates usually remember. */
export const SKIPPED: GroupAnswer = { admitted: false, tallies: [] };

/**
 * Returns the groups in the order of a call to the store: all enforced rules, each rule in shadow mode, each rule with
 * the mode `mark`.
 */
export function groupsOf<Client extends AppliedClient>(
  applied: readonly Client[],
): (readonly Client[])[] {
  if (applied.every(isEnforced)) return applied.length === 0 ? [] : [applied];
  const enforced = applied.filter(isEnforced);
  const inMode = (mode: Mode) => applied.filter(({ rule }) => rule.mode === mode);
  const others = [...inMode("shadow"), ...inMode("mark")].map((each) => [each]);
  return enforced.length === 0 ? others : [enforced, ...others];
}

function isEnforced({ rule }: AppliedClient): boolean {
  return rule.mode === "enforce";
}

/** Whether a group has the enforced rules. Only this group denies the request. */
export function isEnforcedGroup([first]: ClientGroup): boolean {
  return first !== undefined && isEnforced(first);
}

export function keyedCountersOf(group: ClientGroup): RuleCounter[] {
  return group.flatMap(({ keyedCounters }) => keyedCounters);
}

/** The empty list, to which `added` adds the first value. */
export const NONE: never[] = [];

/** Adds a value to a list. Most lists get one value, and V8 makes room for 17 if it is pushed to an empty list. */
export function added<Value>(list: Value[], value: Value): Value[] {
  if (list.length === 0) return [value];
  list.push(value);
  return list;
}

/** Returns a decided request. @param answers one for each group */
export function replayedRequestOf(
  request: LogRequest,
  groups: readonly ClientGroup[],
  answers: readonly GroupAnswer[],
): ReplayedRequest {
  let verdicts: RuleVerdict[] = NONE;
  let outcome: ReplayedRequest["outcome"] = "allowed";
  for (let index = 0; index < groups.length; index++) {
    const group = groups[index] as ClientGroup;
    const answer = answers[index] as GroupAnswer;
    if (!answer.admitted && isEnforcedGroup(group)) outcome = "limited";
    let first = 0;
    for (const client of group) {
      verdicts = added(verdicts, verdictOf(client, answer, first, request.at));
      first += client.ruleCounters.length;
    }
  }
  return { request, outcome, verdicts };
}

/** @param first the position of the rule's first counter in its group */
function verdictOf(
  counted: AppliedClient,
  answer: GroupAnswer,
  first: number,
  now: number,
): RuleVerdict {
  const { index: rule, text: client, ruleCounters } = counted;
  const denying = answer.admitted ? -1 : denyingPosition(ruleCounters, answer, first);
  const { counter, window } = ruleCounters[Math.max(0, denying)] as RuleCounter;
  const spread: Windows = counted.rule.spread ? { ...counter, offsetMs: 0 } : counter;
  const windows = countsSlots(counter) ? MINUTES : spread;
  const { index, endsAt: windowEnd } = windowAt(now, windows);
  return {
    rule,
    client,
    denied: denying !== -1,
    windowStart: windowStart(windows, index),
    windowEnd,
    policy: window.policy,
    open: openRequests(ruleCounters, answer, first),
    counted,
  };
}

const MINUTES: Windows = { windowMs: 60_000, offsetMs: 0 };

function openRequests(
  ruleCounters: readonly RuleCounter[],
  { tallies }: GroupAnswer,
  first: number,
): number | undefined {
  const last = ruleCounters.length - 1;
  const counter = ruleCounters[last]?.counter;
  if (!counter || !countsSlots(counter)) return undefined;
  // Above the limit are requests that wait for a slot.
  return Math.min(counter.limit, tallies[first + last]?.count ?? 0);
}

/** Returns the position of the first counter of a rule that has denied its group; -1 if none has. */
function denyingPosition(
  ruleCounters: readonly RuleCounter[],
  { tallies }: GroupAnswer,
  first: number,
): number {
  return ruleCounters.findIndex(({ counter }, position) => {
    const tally = tallies[first + position];
    return tally && exceeds(counter, tally);
  });
}

/** A status that no response has and no rule counts. */
const NO_STATUS = 0;

/**
 * Returns the counters that the response of an admitted request charges, in one list for each call of the Worker. One
 * call has the rules with the modes enforce and mark, the other has the rules in shadow mode.
 */
export function responseCountersOf(
  request: LogRequest,
  groups: readonly ClientGroup[],
  answers: readonly GroupAnswer[],
  prefix: string,
): Adjustment[][] {
  const verdicts = groups.flatMap((group, index) => {
    const answer = answers[index] as GroupAnswer;
    return verdictsOf(keyedCountersOf(group), { ...answer, now: request.at });
  });
  const charges = responseChargesOf(verdicts, (applied) => finalCostOf(applied, request));
  const isShadow = ({ verdict }: (typeof charges)[number]) =>
    verdict.appliedRule.rule.mode === "shadow";
  return [charges.filter((each) => !isShadow(each)), charges.filter(isShadow)]
    .map((each) =>
      countersOf(quotaCounters(each.flatMap((charge) => chargedCountersOf(charge, prefix)))),
    )
    .filter((counters) => counters.length > 0);
}

function finalCostOf(appliedRule: AppliedRule, request: LogRequest): FinalCost {
  const { status = NO_STATUS, responseHeaders } = request;
  const headers = { get: (name: string) => responseHeaders?.get(name) ?? null };
  // The cost is unknown if a function of the user would compute it.
  const cost = costOfHead(appliedRule, { status, headers }) ?? "missing";
  return status === NO_STATUS ? withCause(cost, "no-response") : cost;
}
