import type { Row, Writes } from "../../src/engine/counter.ts";
import { adjustGroup, decideGroup, returnUnused } from "../../src/engine/fixed-window.ts";
import { isDependent, type Store, skipped } from "../../src/stores/store.ts";

/** A table with fewer rows or clients than this is not searched for those that have expired. */
export const FIRST_SWEEP = 4096;

/**
 * The rows of counters. It removes the rows that have expired by the clock of the log, so its size follows from
 * the live counters and not from the length of the log. The store in memory (src/stores/memory-store.ts) removes
 * rows only when it is full, and returns promises.
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

/** Returns a store whose clock is that of the simulation. */
export function createRowStore(): Store {
  const rows = new RowTable();
  const reader = (now: number) => (key: string) => rows.read(key, now);
  return {
    decide(groups, now = Date.now(), unused = []) {
      rows.write(returnUnused(unused, now, reader(now)), now);
      let isAdmitted = true;
      return groups.map(async (group, index) => {
        if (!isAdmitted && isDependent(groups, index)) return skipped(now);
        const { verdict, writes } = decideGroup(group, now, reader(now));
        rows.write(writes, now);
        if (index === 0) isAdmitted = verdict.admitted;
        return { ...verdict, now };
      });
    },
    async adjust(counters, now = Date.now(), unused = []) {
      rows.write(returnUnused(unused, now, reader(now)), now);
      const { tallies, writes } = adjustGroup(counters, now, reader(now));
      rows.write(writes, now);
      return tallies;
    },
    reset: () => Promise.reject(new Error("A replay resets no counters.")),
  };
}
