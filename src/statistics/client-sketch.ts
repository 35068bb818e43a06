import type { LimitedClient } from "./sums.ts";

/** The default of the maximum number of clients that a sketch returns. */
export const SKETCH_SIZE = 256;

/**
 * The clients that were limited most often, with a bounded number of entries.
 *
 * With twice as many entries as allowed, the half with the smaller counts is dropped. From then on, a new client may
 * have been dropped before, with at most the largest dropped count. So this count is added to the client's count and
 * to its error. The error has the bound of the algorithm Space-Saving (Metwally, Agrawal and El Abbadi, 2005), with
 * less work for a new client.
 */
export class ClientSketch {
  readonly #size: number;
  readonly #entries = new Map<string, LimitedClient>();
  /** The largest dropped count. */
  #dropped = 0;

  /** @param entries the result of `top` of another sketch of the same size */
  constructor(entries: readonly LimitedClient[] = [], size = SKETCH_SIZE) {
    this.#size = size;
    for (const entry of entries) this.#entries.set(keyOf(entry), entry);
    if (entries.length >= size) this.#dropped = Math.min(...entries.map(({ count }) => count));
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  add(client: LimitedClient): void {
    const key = keyOf(client);
    const { count, error, lastAt } = this.#entries.get(key) ?? {
      count: this.#dropped,
      error: this.#dropped,
      lastAt: 0,
    };
    this.#entries.set(key, {
      ...client,
      count: count + client.count,
      error: error + client.error,
      lastAt: Math.max(lastAt, client.lastAt),
    });
    if (this.#entries.size >= 2 * this.#size) this.#shrink();
  }

  /** Returns the clients, the most limited first. */
  top(count = this.#size): LimitedClient[] {
    return [...this.#entries.values()]
      .sort((one, other) => other.count - one.count)
      .slice(0, Math.min(count, this.#size));
  }

  /** Returns the clients, and removes them from the sketch. */
  take(): LimitedClient[] {
    const clients = this.top();
    this.#entries.clear();
    this.#dropped = 0;
    return clients;
  }

  #shrink(): void {
    const sorted = [...this.#entries].sort(([, one], [, other]) => other.count - one.count);
    this.#dropped = Math.max(this.#dropped, sorted[this.#size]?.[1].count ?? 0);
    for (const [key] of sorted.slice(this.#size)) this.#entries.delete(key);
  }
}

/** Operators see the same rule in shadow mode and enforced as two entries. */
function keyOf({ rule, client, shadow }: LimitedClient): string {
  return `${rule}:${client}:${shadow}`;
}
