import { banKey } from "../engine/bans.ts";
import {
  type Counter,
  type Demand,
  MAX_COUNT,
  type Row,
  storedKey,
  windowEndingNear,
} from "../engine/counter.ts";
import { decideGroup } from "../engine/fixed-window.ts";
import type { ClientState, CounterTally } from "../limiter/clients.ts";
import { costBefore } from "../limiter/counters.ts";
import type { Decision } from "../limiter/decision.ts";
import { Limiter } from "../limiter/limiter.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import {
  type Answer,
  type Group,
  isDependent,
  type Store,
  StoreError,
  skipped,
} from "../stores/store.ts";
import type {
  ExplainContext,
  ExplainedBan,
  ExplainedCounter,
  ExplainedRule,
} from "./explanation.ts";

/** The decision that a request would get, and what it would do under each rule. */
export interface DryRun {
  readonly decision: Decision;
  /** Undefined if the store could be read. */
  readonly storeFailure?: string;
  /** Returns the fields of a rule's explanation that depend on the store. */
  readonly stateOf: (applied: AppliedRule) => Partial<ExplainedRule>;
}

/**
 * Reads the clients' states, and decides the request by them. Charges nothing, and begins no ban.
 *
 * @throws {StoreError} if the store fails and `context.decide` is undefined
 */
export async function dryRun(
  appliedRules: readonly AppliedRule[],
  context: ExplainContext,
  now: number,
): Promise<DryRun> {
  let states: readonly ClientState[];
  try {
    states = await context.read(appliedRules);
  } catch (error) {
    if (!(error instanceof StoreError) || !context.decide) throw error;
    const decision = await context.decide(appliedRules);
    const exceeded = await exceededBy(decision);
    return {
      decision,
      storeFailure: `${error.failure}, ${error.message}`,
      stateOf: (applied) => ({ exceeds: exceeds(applied, exceeded), quotas: [] }),
    };
  }
  const { prefix } = context.bindings;
  const { timeoutMs } = context.config;
  const counters = states.flatMap((state) => state.counters);
  const store = new ReadOnlyStore(counters, now);
  const config = { prefix, timeoutMs, clock: "edge" } as const;
  const limiter = new Limiter(config, store, { time: () => store.now });
  const decision = await limiter.decide(appliedRules);
  const exceeded = await exceededBy(decision);
  const byRule = new Map(appliedRules.map((each, index) => [each, states[index]]));
  return {
    decision,
    stateOf(applied) {
      const state = byRule.get(applied);
      if (!state) return {};
      const newBan = newBanOf(applied, state.counters, store);
      return {
        exceeds: exceeds(applied, exceeded),
        quotas: state.quotas,
        counters: countersOf(applied, state.counters, store),
        banMs: state.banMs,
        ...(newBan && { newBan }),
      };
    },
  };
}

/** Returns the policies whose limits the request exceeds, of rules in every mode. */
async function exceededBy(decision: Decision): Promise<Set<string>> {
  if (decision.outcome === "undecided") return new Set();
  const shadow = (await Promise.all(decision.shadow)).flat();
  return new Set(
    [...decision.quotas, ...shadow].flatMap((each) =>
      "violated" in each && each.violated ? [each.policy] : [],
    ),
  );
}

function exceeds({ windows }: AppliedRule, exceeded: ReadonlySet<string>): boolean {
  return windows.some(({ policy }) => exceeded.has(policy));
}

/** Returns the counters of a client under a rule, and what the request would store. */
function countersOf(
  { rule, cost = costBefore(rule.cost) }: AppliedRule,
  states: readonly CounterTally[],
  store: ReadOnlyStore,
): ExplainedCounter[] {
  const decided = new Set(store.decided.map(({ key }) => key));
  const isDecided = states.some(({ counter }) => decided.has(counter.key));
  // If the request would use no shard, the first one is shown.
  const isShown = ({ counter }: CounterTally) =>
    isDecided ? decided.has(counter.key) : !shardOf(counter);
  return states.filter(isShown).map((state): ExplainedCounter => {
    const { counter, window, tally } = state;
    const shard = rule.shards > 1 ? shardOf(counter) : undefined;
    const { startsAt, endsAt } = windowEndingNear(store.now + tally.resetMs, counter);
    const key = storedKey(counter, store.now);
    const write = store.writes.get(key);
    return {
      policy: window.policy,
      ...(shard !== undefined && { shard }),
      limit: counter.limit,
      capacity: state.capacity,
      count: tally.count,
      cost,
      windowStart: startsAt,
      windowEnd: endsAt,
      storedKey: key,
      ...(write && { countAfter: write.count, expiresAt: write.expiresAt }),
    };
  });
}

/** Returns the longest ban under a rule that the request would begin; undefined if it begins none. */
function newBanOf(
  { rule }: AppliedRule,
  states: readonly CounterTally[],
  { writes }: ReadOnlyStore,
): ExplainedBan | undefined {
  const bans = states.flatMap(({ counter }): ExplainedBan[] => {
    const storedKey = banKey(counter);
    const row = writes.get(storedKey);
    return row
      ? [{ storedKey, until: row.expiresAt, isAtLeast: rule.escalation !== undefined }]
      : [];
  });
  return bans.sort((one, other) => other.until - one.until)[0];
}

/** Returns the number of a counter's shard; undefined if the rule has no shards. */
function shardOf({ identity }: Counter): number | undefined {
  const [, shard] = identity.split("#");
  return shard === undefined ? undefined : Number(shard);
}

/**
 * A store that decides with the counts that another store has, and only notes what it would store. So an
 * explanation has the decision, the counts and the bans of a real request, but takes no quota.
 */
class ReadOnlyStore implements Store {
  /** The time of the other store, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** The rows that the decision would store, by their keys. */
  readonly writes = new Map<string, Row>();
  /** The counters that were decided. */
  readonly decided: Demand[] = [];
  readonly #rows = new Map<string, Row>();

  /**
   * @param states the states of all counters that may be decided
   * @param now this isolate's time
   */
  constructor(states: readonly CounterTally[], now: number) {
    this.now = storeTimeOf(states, now);
    for (const { counter, tally } of states) {
      const { count, banMs } = tally;
      const window = windowEndingNear(this.now + tally.resetMs, counter).index;
      const key = storedKey(counter, this.now);
      if (count > 0) this.#rows.set(key, { window, count, expiresAt: MAX_COUNT });
      if (banMs > 0) {
        this.#rows.set(banKey(counter), { window: 0, count: 1, expiresAt: this.now + banMs });
      }
    }
  }

  decide(groups: readonly Group[], now = this.now): Promise<Answer>[] {
    let first: Answer | undefined;
    return groups.map(async (group, index) => {
      this.decided.push(...group);
      if (first?.admitted === false && isDependent(groups, index)) return skipped(now);
      const { verdict, writes } = decideGroup(group, now, (key) => this.#rows.get(key));
      for (const [key, row] of writes) if (row) this.writes.set(key, row);
      const answer = { ...verdict, now };
      first ??= answer;
      return answer;
    });
  }

  adjust(): Promise<never> {
    throw new TypeError("A read-only store only decides.");
  }

  reset(): Promise<never> {
    throw new TypeError("A read-only store only decides.");
  }
}

/**
 * Returns the time of the store that has answered. Both clocks differ by less than half of the longest
 * window, so the end of this window and the time until then show it.
 */
function storeTimeOf(states: readonly CounterTally[], now: number): number {
  let longest: CounterTally | undefined;
  for (const each of states) {
    if (!longest || each.counter.windowMs > longest.counter.windowMs) longest = each;
  }
  if (!longest) return now;
  const { counter, tally } = longest;
  return windowEndingNear(now + tally.resetMs, counter).endsAt - tally.resetMs;
}
