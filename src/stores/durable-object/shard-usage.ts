import type { Counter, Tally } from "../../engine/counter.ts";

/** The most shards stored. They take about 200 KB. */
const MAX_SHARDS = 1024;

/**
 * The last counts of shards that this isolate has seen. They determine which of two shards is called
 * first, so that both fill up nearly evenly at the price of one call per request. They decide nothing.
 */
export class ShardUsage {
  readonly #counts = new Map<string, { count: number; validUntil: number }>();

  record({ key }: Counter, { count, resetMs }: Tally): void {
    this.#counts.delete(key);
    this.#counts.set(key, { count, validUntil: Date.now() + resetMs });
    if (this.#counts.size <= MAX_SHARDS) return;
    for (const oldest of this.#counts.keys()) {
      this.#counts.delete(oldest);
      break;
    }
  }

  /** The quota left when the shard was last seen; its whole ceiling if that is not recorded. */
  quotaLeft({ key, ceiling }: Counter): number {
    const seen = this.#counts.get(key);
    return ceiling - (seen && Date.now() < seen.validUntil ? seen.count : 0);
  }
}
