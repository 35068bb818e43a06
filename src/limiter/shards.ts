/** The numbers of two shards, in ascending order. */
export type ShardPair = readonly [number, number];

/** Returns a shard's share of a quota. Shares differ by at most 1, and their sum is the quota. */
export function shardQuota(quota: number, shards: number, shard: number): number {
  return Math.floor(quota / shards) + (shard < quota % shards ? 1 : 0);
}

/**
 * Picks two different shards at random. The store charges the shard with more quota left, so that
 * all shards fill up at nearly the same rate.
 *
 * @param random returns a number from 0 to less than 1
 */
export function pickShards(shards: number, random = Math.random): ShardPair {
  const one = Math.floor(random() * shards);
  const other = (one + 1 + Math.floor(random() * (shards - 1))) % shards;
  return one < other ? [one, other] : [other, one];
}
