import { type Counter, counterId, type Tally } from "../../engine/counter.ts";

/** The maximum number of shards stored. That many shards take about 200 KB. */
const MAX_SHARDS = 1024;

/**
 * The last counts of shards that this isolate has seen. These counts determine which of two shards
 * is called first. So both shards fill up nearly evenly, and a request usually takes only one call.
 * The counts never decide a request.
 */
export class ShardUsage {
  readonly #counts = new Map<string, { count: number; validUntil: number }>();

  record(counter: Counter, { count, resetMs }: Tally): void {
    const id = counterId(counter);
    this.#counts.delete(id);
    this.#counts.set(id, { count, validUntil: Date.now() + resetMs });
    if (this.#counts.size <= MAX_SHARDS) return;
    for (const oldest of this.#counts.keys()) {
      this.#counts.delete(oldest);
      break;
    }
  }

  /** The quota left when the shard was last seen; the whole ceiling if no valid count is stored. */
  quotaLeft(counter: Counter): number {
    const seen = this.#counts.get(counterId(counter));
    return counter.ceiling - (seen && Date.now() < seen.validUntil ? seen.count : 0);
  }
}
