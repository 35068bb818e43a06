import type { Row, Writes } from "../engine/counter.ts";
import { adjustGroup, decideGroup, resetGroup, returnUnused } from "../engine/fixed-window.ts";
import { ExpiryQueue } from "./expiry-queue.ts";
import { failedGroup, isShadow } from "./shadow-groups.ts";
import type { GroupAnswer, Store } from "./store.ts";
import { StoreError } from "./store-error.ts";

/** Counters kept at most: about 30 MB. */
const MAX_COUNTERS = 100_000;

/** Expired counters that one call removes at most, beyond those that it needs the places of. */
const MAX_REMOVED = 64;

/**
 * A store in this isolate's memory, for tests and for a single process. Cloudflare runs many
 * isolates and each would count alone.
 *
 * Bounded: past `maxCounters` it drops what has expired, and when nothing has it throws a
 * `StoreError` ("memory-full") rather than forget a live counter, which would exceed a limit. Rules in
 * shadow mode have as many places of their own, so that they take none from enforced rules.
 */
export function createMemoryStore(maxCounters = MAX_COUNTERS): Store {
  const enforced = new BoundedRows(maxCounters);
  const trial = new BoundedRows(maxCounters);

  /** A row stays where it is: a rule in shadow mode may be looked at as if it were enforced. */
  function reader(now: number) {
    return (key: string) => enforced.read(key, now) ?? trial.read(key, now);
  }

  function write(writes: Writes, now: number, forShadow = false): void {
    const home = forShadow ? trial : enforced;
    const isNew = (key: string) => !enforced.has(key) && !trial.has(key);
    let added = 0;
    for (const [key, row] of writes) if (row && isNew(key)) added += 1;
    if (added > 0) home.makePlaces(added, now);
    for (const [key, row] of writes) {
      const rows = isNew(key) ? home : enforced.has(key) ? enforced : trial;
      rows.write(key, row);
    }
  }

  return {
    async decide(groups, now = Date.now(), unused = []) {
      write(returnUnused(unused, now, reader(now)), now);
      const answers = groups.map((counters): GroupAnswer => {
        const { verdict, writes } = decideGroup(counters, now, reader(now));
        try {
          write(writes, now, isShadow(counters));
          return verdict;
        } catch (error) {
          if (!isShadow(counters)) throw error;
          return failedGroup(error);
        }
      });
      return { now, groups: answers };
    },

    async adjust(counters, now = Date.now()) {
      const { tallies, writes } = adjustGroup(counters, now, reader(now));
      write(writes, now, isShadow(counters));
      return tallies;
    },

    async reset(counters, now = Date.now()) {
      write(resetGroup(counters, now), now);
    },
  };
}

/** At most `max` rows. What has expired gives way when a place is needed, the first to expire first. */
class BoundedRows {
  readonly #rows = new Map<string, Row>();
  /** When rows expire, as of when they were written first: some live longer by now, or are gone. */
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
    // Entries of removed rows stay in the queue until they expire: a bound for them.
    if (this.#expiries.size > 2 * this.#rows.size + MAX_REMOVED) {
      this.#expiries.clear();
      for (const [each, { expiresAt }] of this.#rows) this.#expiries.add(each, expiresAt);
    }
  }

  /** @throws {StoreError} ("memory-full") when there are not as many places */
  makePlaces(count: number, now: number): void {
    for (let looks = 0; looks < count + MAX_REMOVED; looks++) {
      if (this.#rows.size + count <= this.#max) return;
      const key = this.#expiries.takeExpired(now);
      if (key === undefined) break;
      const row = this.#rows.get(key);
      if (!row) continue;
      if (row.expiresAt > now) this.#expiries.add(key, row.expiresAt);
      else this.#rows.delete(key);
    }
    if (this.#rows.size + count <= this.#max) return;
    throw new StoreError("memory-full", `the memory store holds ${this.#max} counters already`);
  }
}
