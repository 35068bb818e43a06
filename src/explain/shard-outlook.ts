import type { ClientState } from "../limiter/clients.ts";
import { costBefore, pickShards, type ShardPair, usedShards } from "../limiter/counters.ts";
import type { AppliedRule } from "../request/rule-applier.ts";

/** How the random choice of two shards changes the decision under a rule. */
export interface ShardOutlook {
  /** A random pair with the likelier result. */
  readonly pair: ShardPair;
  /** Whether some pairs admit the request, and others do not. */
  readonly mayDiffer: boolean;
  /** The number of shards from which requests choose. */
  readonly shards: number;
}

/**
 * Compares all pairs of shards that the request may draw. If as many pairs admit it as not, it counts as admitted.
 *
 * @returns undefined if the rule has no shards
 */
export function shardOutlookOf(
  applied: AppliedRule,
  { counters }: ClientState,
): ShardOutlook | undefined {
  const { rule, cost = costBefore(rule.cost) } = applied;
  if (rule.shards === 1) return undefined;
  const shards = usedShards(applied);
  // Whether each shard alone has quota for the request, by window. The store uses the shard with more quota left.
  const hasQuota = applied.windows.map((window) =>
    counters
      .filter((each) => each.window === window)
      .map(({ capacity, tally }) => tally.count + cost <= capacity),
  );
  const pairs: Record<"admitting" | "denying", ShardPair[]> = { admitting: [], denying: [] };
  for (let one = 0; one < shards; one++) {
    for (let other = one + 1; other < shards; other++) {
      const isAdmitted = hasQuota.every((each) => each[one] || each[other]);
      pairs[isAdmitted ? "admitting" : "denying"].push([one, other]);
    }
  }
  const { admitting, denying } = pairs;
  const likelier = admitting.length >= denying.length ? admitting : denying;
  const [drawn, another] = pickShards(shards);
  const pair = likelier.find(([one, other]) => one === drawn && other === another) ?? likelier[0];
  const mayDiffer = admitting.length > 0 && denying.length > 0;
  return pair && { pair, mayDiffer, shards };
}

/** Returns the numbers with which `pickShards` picks the pairs of these outlooks, one after another. */
export function randomFor(outlooks: Iterable<ShardOutlook>): () => number {
  const numbers = [...outlooks].flatMap(({ pair: [one, other], shards }) => [
    (one + 0.5) / shards,
    (other - one - 0.5) / (shards - 1),
  ]);
  return () => numbers.shift() ?? Math.random();
}
