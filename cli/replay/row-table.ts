import type { Row, Writes } from "../../src/engine/counter.ts";

/** Only a table with at least this many rows is searched for expired ones. */
const FIRST_SWEEP = 4096;

/**
 * The rows of counters. It removes rows that have expired by the clock of the log, so its size depends on the live
 * counters, and not on the log's length. The store in memory (src/stores/memory-store.ts) removes rows only when it
 * is full, and returns promises.
 */
export class RowTable {
  readonly #rows = new Map<string, Row>();
  #sweepAt = FIRST_SWEEP;

  get size(): number {
    return this.#rows.size;
  }

  read(key: string, now: number): Row | undefined {
    const row = this.#rows.get(key);
    return row && row.expiresAt > now ? row : undefined;
  }

  /** @param now never earlier than in earlier calls */
  write(writes: Writes, now: number): void {
    for (const [key, row] of writes) {
      if (row) this.#rows.set(key, row);
      else this.#rows.delete(key);
    }
    if (this.#rows.size < this.#sweepAt) return;
    for (const [key, { expiresAt }] of this.#rows) if (expiresAt <= now) this.#rows.delete(key);
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#rows.size);
  }
}
