import { banKey } from "../engine/bans.ts";
import { type Counter, storedKey, windowEndingNear } from "../engine/counter.ts";
import type { CounterTally } from "../limiter/clients.ts";
import { costBefore } from "../limiter/counters.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import type { ExplainedBan, ExplainedCounter } from "./explanation.ts";
import type { ImaginedStore } from "./imagined-store.ts";

/** The number of shards whose counters are shown if the request would use none. */
const SHOWN_SHARDS = 2;

/** Returns the counters of a client under a rule, and what a request would store. */
export function explainCounters(
  { rule, cost = costBefore(rule.cost) }: AppliedRule,
  states: readonly CounterTally[],
  store: ImaginedStore,
): ExplainedCounter[] {
  const decided = new Set(
    store.decided.flatMap(({ key, alternative }) => (alternative ? [key, alternative.key] : [key])),
  );
  const isDecided = states.some(({ counter }) => decided.has(counter.key));
  const isShown = ({ counter }: CounterTally) =>
    isDecided ? decided.has(counter.key) : (shardOf(counter) ?? 0) < SHOWN_SHARDS;
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
export function explainNewBan(
  { rule }: AppliedRule,
  states: readonly CounterTally[],
  { writes }: ImaginedStore,
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
