import type { Row, Writes } from "../engine/counter.ts";
import { adjustGroup, decideGroup, resetGroup, returnUnused } from "../engine/fixed-window.ts";
import { ExpiryQueue } from "./heap.ts";
import { type Answer, isOptional, type Store, StoreError } from "./store.ts";

/** The default of the maximum number of counters. That many counters take about 30 MB. */
const MAX_COUNTERS = 100_000;

/** The number of expired rows that a call may remove beyond the number of rows that it adds. */
const EXTRA_REMOVALS = 64;

/**
 * Creates a store in this isolate's memory, for tests and for a single process.
 *
 * The store is bounded. When it is full, expired counters are replaced. If no counter has expired,
 * the store throws a `StoreError` ("memory-full"), because dropping a valid counter would admit
 * requests above a limit.
 *
 * @param maxCounters the maximum number of counters of enforced rules. Rules in other modes have a second
 * table of the same size, so that they take no space from enforced rules
 */
export function createMemoryStore(maxCounters = MAX_COUNTERS): Store {
  const enforced = new BoundedRows(maxCounters);
  const other = new BoundedRows(maxCounters);

  /** Reads both tables, because programs read the counters of rules in any mode. */
  function rowReader(now: number) {
    return (key: string) => enforced.read(key, now) ?? other.read(key, now);
  }

  function write(writes: Writes, now: number, isOther = false): void {
    const tableForNew = isOther ? other : enforced;
    const isNew = (key: string) => !enforced.has(key) && !other.has(key);
    let added = 0;
    for (const [key, row] of writes) if (row && isNew(key)) added += 1;
    if (added > 0) tableForNew.makeSpace(added, now);
    for (const [key, row] of writes) {
      const table = isNew(key) ? tableForNew : enforced.has(key) ? enforced : other;
      table.write(key, row);
    }
  }

  return {
    decide(groups, now = Date.now(), unused = []) {
      write(returnUnused(unused, now, rowReader(now)), now);
      return groups.map(async (group): Promise<Answer> => {
        const { verdict, writes } = decideGroup(group, now, rowReader(now));
        write(writes, now, isOptional(group));
        return { ...verdict, now, fromMemory: true };
      });
    },

    denialOf(group, now = Date.now()) {
      const { verdict, writes } = decideGroup(group, now, rowReader(now));
      if (verdict.admitted) return undefined;
      write(writes, now, isOptional(group));
      return { ...verdict, now, fromMemory: true };
    },

    async adjust(counters, now = Date.now(), unused = []) {
      write(returnUnused(unused, now, rowReader(now)), now);
      const { tallies, writes } = adjustGroup(counters, now, rowReader(now));
      write(writes, now, isOptional(counters));
      return tallies;
    },

    async reset(counters, now = Date.now()) {
      write(resetGroup(counters, now), now);
    },
  };
}

/** A table of at most `max` rows. New rows replace expired ones, in the order of expiry. */
class BoundedRows {
  readonly #rows = new Map<string, Row>();
  /** The expiry that each row had when it was added. The row may have been changed or removed since. */
  readonly #expiries = new ExpiryQueue();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  has(key: string): boolean {
    return this.#rows.has(key);
  }

  read(key: string, now: number): Row | undefined {
    const row = this.#rows.get(key);
    return row && row.expiresAt > now ? row : undefined;
  }

  write(key: string, row: Row | undefined): void {
    if (!row) {
      this.#rows.delete(key);
      return;
    }
    const before = this.#rows.get(key);
    this.#rows.set(key, row);
    if (!before || row.expiresAt < before.expiresAt) this.#expiries.add(key, row.expiresAt);
    // Entries of removed rows stay in the queue until they expire. Rebuilding the queue bounds
    // their number.
    if (this.#expiries.size > 2 * this.#rows.size + EXTRA_REMOVALS) {
      this.#expiries.clear();
      for (const [each, { expiresAt }] of this.#rows) this.#expiries.add(each, expiresAt);
    }
  }

  /**
   * Removes expired rows until there is space for `count` new rows.
   *
   * @throws {StoreError} ("memory-full") if there is not enough space
   */
  makeSpace(count: number, now: number): void {
    for (let attempts = 0; attempts < count + EXTRA_REMOVALS; attempts++) {
      if (this.#rows.size + count <= this.#max) return;
      const key = this.#expiries.takeExpired(now);
      if (key === undefined) break;
      const row = this.#rows.get(key);
      if (!row) continue;
      if (row.expiresAt > now) this.#expiries.add(key, row.expiresAt);
      else this.#rows.delete(key);
    }
    if (this.#rows.size + count <= this.#max) return;
    throw new StoreError("memory-full", `the memory store already has ${this.#max} counters`);
  }
}
