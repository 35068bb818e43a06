import { banKey } from "../engine/bans.ts";
import { type Counter, storedKey, windowEndingNear } from "../engine/counter.ts";
import type { CounterTally } from "../limiter/clients.ts";
import { costBefore } from "../limiter/counters.ts";
import { type Override, overrideId } from "../overrides/override.ts";
import type { AppliedRule } from "../request/rule-applier.ts";
import type { ExplainedBan, ExplainedCounter, ExplainedRule } from "./explanation.ts";
import type { IdentifiedClient } from "./identified-request.ts";
import type { ImaginedDecision } from "./imagined-decision.ts";
import type { ImaginedStore } from "./imagined-store.ts";
import type { MatchedRule } from "./matching.ts";

/** The number of shards whose counters are shown if the request would use none. */
const SHOWN_SHARDS = 2;

/** Returns the counters of a client under a rule, and what a request would store. */
function explainCounters(
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
function explainNewBan(
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

/**
 * Puts the explanation of a rule together.
 *
 * @param client undefined if the rule does not match
 * @param imagined undefined if no rule applies
 * @param overrides the overrides by their ids
 */
export function explainedRule(
  { rule, active, conditions, why }: MatchedRule,
  client: IdentifiedClient | undefined,
  imagined: ImaginedDecision | undefined,
  overrides: ReadonlyMap<string, Override>,
): ExplainedRule {
  const identity = client?.identity;
  const override =
    (identity === undefined
      ? undefined
      : overrides.get(overrideId({ rule: rule.name, client: identity }))) ??
    overrides.get(overrideId({ rule: rule.name }));
  const base: Omit<ExplainedRule, "applies" | "why"> = {
    rule: rule.name,
    mode: active?.mode ?? "off",
    conditions: [...conditions, ...(client?.conditions ?? [])],
    key: client?.key ?? [],
    ...(identity !== undefined && { client: identity }),
    ...(override && { override }),
  };
  const applied = client?.applied;
  if (!applied || !imagined) {
    return { ...base, applies: false, why: why || whyNotApplied(client) };
  }
  return {
    ...base,
    applies: true,
    why: whyApplied(applied),
    ...(client.tier !== undefined && { tier: client.tier }),
    cost: applied.cost ?? costBefore(applied.rule.cost),
    costSource: client.costSource,
    ...stateOf(applied, imagined),
  };
}

function whyNotApplied(client: IdentifiedClient | undefined): string {
  if (client?.identity !== undefined) return "An override exempts the client.";
  const field = client?.conditions.at(-1)?.field ?? "exempt";
  return `The request fulfils exempt: ${field.slice("exempt.".length)}.`;
}

function whyApplied({ rule: { mode }, blockedUntil }: AppliedRule): string {
  const matches = mode === "enforce" ? "It matches." : `It matches, with mode: "${mode}".`;
  return blockedUntil === undefined ? matches : `${matches} An override blocks the client.`;
}

/** Returns the fields of a rule that depend on the store. */
function stateOf(
  applied: AppliedRule,
  { states, store, exceeded, mayDiffer }: ImaginedDecision,
): Partial<ExplainedRule> {
  const exceeds = applied.windows.some(({ policy }) => exceeded.has(policy));
  const state = states.get(applied);
  if (!state || !store) return { exceeds, quotas: [] };
  const newBan = explainNewBan(applied, state.counters, store);
  return {
    exceeds,
    quotas: state.quotas,
    counters: explainCounters(applied, state.counters, store),
    ...(mayDiffer.has(applied) && applied.blockedUntil === undefined && { mayDiffer: true }),
    banMs: state.banMs,
    ...(newBan && { newBan }),
  };
}
