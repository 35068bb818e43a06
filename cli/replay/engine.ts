import { formatCount } from "../../src/admin/format.ts";
import { hasConcurrent, type Rule, type Window } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import type { ReadRow, Tally } from "../../src/engine/counter.ts";
import { adjustGroup, decideGroup, quotaAfterMs } from "../../src/engine/fixed-window.ts";
import { countsSlots, openSlots } from "../../src/engine/slots.ts";
import { certainTalliesOf } from "../../src/limiter/blocked.ts";
import {
  chargedCountersOf,
  costOfHead,
  type FinalCost,
  responseChargesOf,
  withCause,
} from "../../src/limiter/cost.ts";
import {
  countersOf,
  dependsOnResponse,
  quotaCounters,
  type RuleCounter,
  ruleCountersOf,
  waits,
} from "../../src/limiter/counters.ts";
import { exceeds, verdictsOf } from "../../src/limiter/decision.ts";
import { MAX_WAITING_FOR_ONE } from "../../src/limiter/waiting-room.ts";
import { bodyCostOf, hasCustomCost, unknownCost } from "../../src/request/custom-calls.ts";
import { type AppliedRule, isExemptAddress } from "../../src/request/rule-applier.ts";
import type { LogFacts, LogRequest } from "../logs/log-request.ts";
import { type ReportNote, requestsHave } from "../logs/needs.ts";
import { insertByTime } from "../logs/time-order.ts";
import { chooseRules, type RuleChoice, replayedRuleOf } from "./choose-rules.ts";
import { firstValue, type LogClient, LogRules } from "./log-rules.ts";
import type { LoggedRequest } from "./logged-request.ts";
import type { ReplayedRule } from "./report.ts";
import { RowTable } from "./row-table.ts";

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
  /** The number of the client's open requests, with this one if it was admitted; undefined without `concurrent`. */
  readonly open?: number | undefined;
}

/** A request with the verdicts of all rules that match it. */
export interface ReplayedRequest {
  readonly request: LogRequest;
  /** The outcome for the client: only enforced rules deny. `unmatched`: no rule applies. */
  readonly outcome: "allowed" | "limited" | "undecided" | "unmatched";
  readonly verdicts: readonly RuleVerdict[];
}

/** A rule that counts a request, for one client. */
interface AppliedClient {
  readonly rule: Rule;
  /** The index of the rule among the replayed rules. */
  readonly index: number;
  readonly text: string;
  readonly ruleCounters: readonly RuleCounter[];
}

/** The rules that a store decides as one group. */
type ClientGroup = readonly AppliedClient[];

interface GroupAnswer {
  readonly admitted: boolean;
  readonly tallies: readonly (Tally | undefined)[];
  readonly now: number;
}

/** A request that the enforced rules have not decided for good. */
interface Undecided {
  readonly request: LogRequest;
  readonly enforced: ClientGroup;
  /** The other groups, each with its answer. */
  readonly others: readonly (readonly [group: ClientGroup, answer: GroupAnswer])[];
  readonly done: (replayed: ReplayedRequest) => void;
}

/** A request that waits for its turn. */
interface Sleeper extends Undecided {
  /** The time at which it is decided again. */
  readonly at: number;
  /** The keys of the counters for which it waits. */
  readonly keys: readonly string[];
}

/**
 * Decides requests one by one by the rules of one configuration, like a store without delays and with the clock of
 * the log.
 */
export class ReplayEngine {
  readonly rules: readonly ReplayedRule[];
  readonly leftOut: RuleChoice["leftOut"];
  readonly rows = new RowTable();
  readonly #notes: readonly ReportNote[];
  readonly #logRules: LogRules;
  readonly #indexes: ReadonlyMap<Rule, number>;
  readonly #prefix: string;
  readonly #random: () => number;
  readonly #dependsOnResponse: boolean;
  readonly #countsUnknown: boolean;
  /** Whether a limit is 0, so that some requests are certainly denied. */
  readonly #deniesAll: boolean;
  /** The requests that wait, in the order of their turns. */
  readonly #sleepers: Sleeper[] = [];
  /** How many requests wait for each counter. */
  readonly #sleepersFor = new Map<string, number>();
  #waited = 0;
  #longestWaitMs = 0;
  /** The numbers of requests that take a slot for an unknown time, and that are charged by an unknown status. */
  #withoutDuration = 0;
  #withoutStatus = 0;

  /**
   * @param missingAsAbsent whether values that the log lacks are absent; otherwise, rules that need them are left out
   * @param random returns a number from 0 to less than 1, to choose between shards
   */
  constructor(config: Config, facts: LogFacts, missingAsAbsent = false, random = evenShares()) {
    const { rules, leftOut, notes } = chooseRules(config, facts, missingAsAbsent);
    this.rules = rules.map(replayedRuleOf);
    this.leftOut = leftOut;
    this.#notes = notes;
    this.#logRules = new LogRules(config, rules, facts, missingAsAbsent);
    this.#indexes = new Map(rules.map((rule, index) => [rule, index]));
    this.#prefix = config.prefix;
    this.#random = random;
    this.#dependsOnResponse = rules.some(dependsOnResponse);
    const windows = rules.flatMap((rule) => [
      rule.windows,
      ...(rule.tiers?.windows.values() ?? []),
    ]);
    this.#deniesAll = windows.flat().some(({ limit }) => limit === 0);
    this.#countsUnknown = this.#dependsOnResponse || rules.some(hasConcurrent);
  }

  /** The assumptions and omissions. Some notes appear only after the requests that cause them. */
  get notes(): ReportNote[] {
    const notes = [...this.#notes, ...this.#logRules.notes()];
    if (this.#withoutStatus > 0) {
      const text = `${requestsHave(this.#withoutStatus)} no status in the log. \`count\` and costs by the response take them as requests without a response.`;
      notes.push({ code: "status-not-logged", text });
    }
    if (this.#withoutDuration > 0) {
      const text = `${requestsHave(this.#withoutDuration)} no duration in the log. For \`concurrent\`, they end at once.`;
      notes.push({ code: "duration-not-logged", text });
    }
    if (this.#waited > 0) {
      const requests = this.#waited === 1 ? "request waits" : "requests wait";
      const text = `${formatCount(this.#waited)} ${requests} for a turn (\`wait\`), for at most ${Math.ceil(this.#longestWaitMs)} ms.`;
      notes.push({ code: "waits", text });
    }
    return notes;
  }

  /**
   * Decides a request. The requests come in the order of their times.
   *
   * @param done called with the verdicts: at once, or in a later call if the request waits for its turn
   */
  decide(request: LogRequest, done: (replayed: ReplayedRequest) => void): void {
    this.#wakeUntil(request.at);
    const applied = this.apply(request);
    if (!applied || applied.length === 0) {
      done({ request, outcome: applied ? "unmatched" : "undecided", verdicts: [] });
      return;
    }
    if (this.#countsUnknown) this.#countUnknown(request, applied);
    const { at: now, durationMs = 0 } = request;
    const enforced = applied.filter(({ rule }) => rule.mode === "enforce");
    const tallies = this.#deniesAll ? certainTalliesOf(countersIn(enforced), now) : undefined;
    const answer = tallies
      ? { admitted: false, tallies, now }
      : this.#decideGroup(enforced, now, durationMs);
    const turn = this.#turnOf(enforced, answer, now);
    const isDenied = !answer.admitted && !turn;
    const others = applied
      .filter(({ rule }) => rule.mode !== "enforce")
      .map((each): readonly [ClientGroup, GroupAnswer] => {
        // After a denial, a rule with the mode `mark` is not decided.
        if (isDenied && each.rule.mode === "mark") return [[each], { ...DENIED, now }];
        return [[each], this.#decideGroup([each], now, isDenied ? 0 : durationMs)];
      });
    this.#proceed({ request, enforced, others, done }, answer, turn);
  }

  /** Decides the requests that still wait. Call it after the last request. */
  end(): void {
    this.#wakeUntil(Number.POSITIVE_INFINITY);
  }

  /** @returns the rules that count a request; undefined if the Worker refuses it before it reads the rules */
  apply(request: LogRequest): AppliedClient[] | undefined {
    return this.#logRules.clientsOf(request)?.flatMap((client) => this.#applied(client) ?? []);
  }

  /** @returns undefined if the request is exempt, or if `concurrent` is left out and the client has no other limit */
  #applied(client: LogClient): AppliedClient | undefined {
    const { rule, identity, text, request } = client;
    const windows = windowsFor(client);
    if (windows.length === 0 || isExempt(rule, request)) return undefined;
    const cost = requestCostOf(rule, windows, request);
    const appliedRule = { rule, windows, identity, ...(cost !== undefined && { cost }) };
    const ruleCounters = ruleCountersOf(appliedRule, this.#prefix, { random: this.#random });
    return { rule, index: this.#indexes.get(rule) as number, text, ruleCounters };
  }

  #countUnknown({ status, durationMs }: LogRequest, applied: ClientGroup): void {
    if (status === undefined && applied.some(({ rule }) => dependsOnResponse(rule))) {
      this.#withoutStatus++;
    }
    if (durationMs === undefined && countersIn(applied).some(({ counter }) => countsSlots(counter)))
      this.#withoutDuration++;
  }

  /** @param openMs how long the request is open if the group is admitted */
  #decideGroup(group: ClientGroup, now: number, openMs: number): GroupAnswer {
    // A slot expires when its request ends, so nothing has to give it back.
    const counters = countersIn(group).map(({ counter }) =>
      countsSlots(counter) ? { ...counter, windowMs: openMs } : counter,
    );
    const { verdict, writes } = decideGroup(counters, now, this.#readAt(now));
    this.rows.write(writes, now);
    return { ...verdict, now };
  }

  #readAt(now: number): ReadRow {
    return (key) => this.rows.read(key, now);
  }

  /** Ends a request that is admitted or denied, or lets it wait for its turn. */
  #proceed(undecided: Undecided, answer: GroupAnswer, turn: Turn | undefined): void {
    if (turn) {
      for (const key of turn.keys) this.#count(key, 1);
      insertByTime(this.#sleepers, { ...undecided, ...turn });
      return;
    }
    const { request, enforced, others, done } = undecided;
    const groups = [[enforced, answer] as const, ...others];
    if (answer.admitted) {
      if (answer.now > request.at) this.#waited++;
      this.#longestWaitMs = Math.max(this.#longestWaitMs, answer.now - request.at);
      if (this.#dependsOnResponse) this.#chargeResponse(request, groups, answer.now);
    }
    const verdicts = groups.flatMap(([group, each]) => verdictsIn(group, each));
    done({ request, outcome: answer.admitted ? "allowed" : "limited", verdicts });
  }

  #wakeUntil(now: number): void {
    for (let [first] = this.#sleepers; first && first.at <= now; [first] = this.#sleepers) {
      this.#sleepers.shift();
      for (const key of first.keys) this.#count(key, -1);
      const { enforced, request, at } = first;
      const answer = this.#decideGroup(enforced, at, request.durationMs ?? 0);
      this.#proceed(first, answer, this.#turnOf(enforced, answer, request.at));
    }
  }

  #count(key: string, change: number): void {
    const number = (this.#sleepersFor.get(key) ?? 0) + change;
    if (number > 0) this.#sleepersFor.set(key, number);
    else this.#sleepersFor.delete(key);
  }

  /** @returns undefined if the request is admitted, or if it has no chance within `wait` of the rules that deny it */
  #turnOf(group: ClientGroup, answer: GroupAnswer, arrivedAt: number): Turn | undefined {
    if (answer.admitted) return undefined;
    let at = answer.now;
    const keys: string[] = [];
    for (const [index, ruleCounter] of countersIn(group).entries()) {
      const { rule, counter, misfit } = ruleCounter;
      const tally = answer.tallies[index];
      if (!tally || !exceeds(counter, tally)) continue;
      const chanceAt = this.#chanceOf(ruleCounter, tally, answer.now);
      const isTooLate = !waits(rule) || misfit || chanceAt > arrivedAt + rule.waitMs;
      const isFull = (this.#sleepersFor.get(counter.key) ?? 0) >= MAX_WAITING_FOR_ONE;
      if (isTooLate || isFull) return undefined;
      at = Math.max(at, chanceAt);
      keys.push(counter.key);
    }
    return at > answer.now ? { at, keys } : undefined;
  }

  /** Returns the earliest time at which a counter may admit a request that it denies now. */
  #chanceOf({ counter, capacity }: RuleCounter, tally: Tally, now: number): number {
    if (!countsSlots(counter)) {
      return now + Math.max(tally.banMs, quotaAfterMs(counter, tally, capacity, now));
    }
    const ends = openSlots(this.rows.read(counter.key, now), now).map(([, end]) => end);
    return Math.min(...ends);
  }

  #chargeResponse(request: LogRequest, groups: Undecided["others"], now: number): void {
    const verdicts = groups.flatMap(([group, answer]) => verdictsOf(countersIn(group), answer));
    const charges = responseChargesOf(verdicts, (applied) => finalCostOf(applied, request));
    if (charges.length === 0) return;
    const charged = charges.flatMap((charge) => chargedCountersOf(charge, this.#prefix));
    const { writes } = adjustGroup(countersOf(quotaCounters(charged)), now, this.#readAt(now));
    this.rows.write(writes, now);
  }
}

/** When a request is decided again, and the keys of the counters for which it waits. */
type Turn = Pick<Sleeper, "at" | "keys">;

const DENIED = { admitted: false, tallies: [] };

function countersIn(group: ClientGroup): RuleCounter[] {
  return group.flatMap(({ ruleCounters }) => ruleCounters);
}

/** Returns the verdict of each rule of a group. */
function verdictsIn(group: ClientGroup, { admitted, tallies }: GroupAnswer): RuleVerdict[] {
  let next = 0;
  return group.map(({ index, text, ruleCounters }): RuleVerdict => {
    const first = next;
    next += ruleCounters.length;
    const tallyOf = (position: number) => tallies[first + position];
    const last = ruleCounters.length - 1;
    const counter = ruleCounters[last]?.counter;
    const isExceeded = ruleCounters.some((each, position) => {
      const tally = tallyOf(position);
      return tally !== undefined && exceeds(each.counter, tally);
    });
    return {
      rule: index,
      client: text,
      denied: !admitted && isExceeded,
      open: counter && countsSlots(counter) ? (tallyOf(last)?.count ?? 0) : undefined,
    };
  });
}

/** Returns a substitute for random numbers: multiples of the golden ratio choose all shards about equally often. */
function evenShares(): () => number {
  let share = 0;
  return () => (share = (share + (1 + Math.sqrt(5)) / 2) % 1);
}

function isExempt({ exempt }: Rule, { headers }: LoggedRequest): boolean {
  if (!exempt) return false;
  if (isExemptAddress(exempt.networks, headers)) return true;
  // The value of a secret is unknown, and a note says so.
  return exempt.headers.some(({ name, value }) => headers.get(name) === value);
}

/** Returns the windows of a client's tier, as the Worker does. */
function windowsFor({ rule: { tiers, windows }, context }: LogClient): readonly Window[] {
  const present = firstValue(tiers?.by[0] ?? [], context);
  return (present && tiers?.windows.get(present.value)) ?? windows;
}

/**
 * Returns a cost that depends only on the request; undefined if the response determines it. A cost that a function
 * computes is unknown.
 */
function requestCostOf(
  rule: Rule,
  windows: readonly Window[],
  request: LoggedRequest,
): number | undefined {
  const { cost } = rule;
  if (typeof cost === "object" && hasCustomCost(rule)) return unknownCost(cost, 1);
  return bodyCostOf(rule, windows, request, () => {});
}

/** A status that no response has and no rule counts. */
const NO_STATUS = 0;

function finalCostOf(appliedRule: AppliedRule, request: LogRequest): FinalCost {
  const { status = NO_STATUS, responseHeaders } = request;
  const headers = { get: (name: string) => responseHeaders?.get(name) ?? null };
  // The cost is unknown if a function of the user would compute it.
  const cost = costOfHead(appliedRule, { status, headers }) ?? "missing";
  return status === NO_STATUS ? withCause(cost, "no-response") : cost;
}
