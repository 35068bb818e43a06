import {
  type Counter,
  type Demand,
  type ReadRow,
  type Tally,
  type UnusedQuota,
  type Writes,
  windowKey,
} from "../../src/engine/counter.ts";
import { adjustGroup, decideGroup, returnUnused } from "../../src/engine/fixed-window.ts";
import { ExpiryQueue } from "../../src/stores/heap.ts";
import { type Group, isDependent, type Store } from "../../src/stores/store.ts";
import { type LiveRow, newRow, type RememberedClient, startWindow } from "./clients.ts";
import { type GroupAnswer, SKIPPED } from "./group-answers.ts";

/** Keys by the second in which they expire. Many keys expire in the same second: at the end of a window. */
class KeySchedule {
  readonly #keysBySecond = new Map<number, string[]>();
  readonly #seconds = new ExpiryQueue();

  /** @param expiresAt milliseconds since the Unix epoch */
  add(key: string, expiresAt: number): void {
    const second = Math.ceil(expiresAt / SECOND_MS);
    const keys = this.#keysBySecond.get(second);
    if (keys) {
      keys.push(key);
      return;
    }
    this.#keysBySecond.set(second, [key]);
    this.#seconds.add(`${second}`, second * SECOND_MS);
  }

  /** Removes and returns the keys of the earliest second that is over; undefined if there is none. */
  takeExpired(now: number): readonly string[] | undefined {
    const next = this.#seconds.takeExpired(now);
    if (next === undefined) return undefined;
    const second = Number(next);
    const keys = this.#keysBySecond.get(second);
    this.#keysBySecond.delete(second);
    return keys;
  }
}

const SECOND_MS = 1000;

/**
 * The counters of a replay: a store in memory without promises. It removes each row when its window is over
 * by the clock of the log, so its size follows from the live counters and not from the length of the log.
 */
export class RowTable {
  readonly #rows = new Map<string, LiveRow>();
  /** The keys of the rows of clients. Nothing changes their expiry. */
  readonly #stored = new KeySchedule();
  /** The keys of the other rows, each of them once. */
  readonly #changing = new KeySchedule();
  #now = Number.NEGATIVE_INFINITY;
  #nextSecondAt = Number.NEGATIVE_INFINITY;

  /**
   * The number of rows, including those that expire within the current second. Most rows of clients are in the
   * cache of clients instead.
   */
  get size(): number {
    return this.#rows.size;
  }

  /** Decides groups of counters, as `Store.decide` does. @param now never earlier than in earlier calls */
  decide(groups: readonly Group[], now: number): GroupAnswer[] {
    let first: GroupAnswer | undefined;
    return groups.map((counters, index) => {
      if (first?.admitted === false && isDependent(groups, index)) return SKIPPED;
      const answer = this.decideGroup(counters, now);
      first ??= answer;
      return answer;
    });
  }

  /** Decides one group. @param now never earlier than in earlier calls */
  decideGroup(counters: readonly Demand[], now: number): GroupAnswer {
    this.advance(now);
    const { verdict, writes } = decideGroup(counters, now, this.#read);
    this.#write(writes);
    return verdict;
  }

  /** Adds each counter's cost to its count, as `Store.adjust` does. */
  adjust(counters: readonly Demand[], now: number): readonly Tally[] {
    this.advance(now);
    const { tallies, writes } = adjustGroup(counters, now, this.#read);
    this.#write(writes);
    return tallies;
  }

  /** Subtracts quota that isolates return, as `Store.decide` does. */
  returnUnused(unused: readonly UnusedQuota[], now: number): void {
    if (unused.length === 0) return;
    this.advance(now);
    this.#write(returnUnused(unused, now, this.#read));
  }

  /** Gives the rows of a client that was forgotten to the object that stands for it now. */
  adopt(client: RememberedClient, now: number): void {
    for (let index = 0; index < client.template.counters.length; index++) {
      const { counter, window } = client.template.at(index, now);
      const key = windowKey(counter.key + client.identity, window);
      const stored = this.#rows.get(key);
      if (!stored) continue;
      const row = client.rowAt(index);
      row.window = window;
      row.count = stored.count;
      row.expiresAt = stored.expiresAt;
      row.storedWindow = window;
      this.#rows.set(key, row);
    }
  }

  /** Stores the rows of a client that no cache has any longer. */
  store(client: RememberedClient): void {
    for (let index = 0; index < client.template.counters.length; index++) {
      const row = client.rowAt(index);
      const { key } = client.template.counters[index] as Counter;
      if (row.expiresAt > this.#now) this.#storeRow(row, key + client.identity);
    }
  }

  /**
   * Stores the rows of a client for a decision that needs their keys, because it is together with other rules.
   * So the decision reads and changes the client's own rows.
   */
  prepare(client: RememberedClient, now: number): void {
    for (let index = 0; index < client.template.counters.length; index++) {
      const current = client.template.at(index, now);
      const row = client.rowAt(index);
      if (row.window !== current.window) startWindow(row, current);
      this.#storeRow(row, current.counter.key + client.identity);
    }
  }

  /** @param key the key without the number of the window */
  #storeRow(row: LiveRow, key: string): void {
    if (row.storedWindow === row.window) return;
    row.storedWindow = row.window;
    const stored = windowKey(key, row.window);
    this.#rows.set(stored, row);
    this.#stored.add(stored, row.expiresAt);
  }

  readonly #read: ReadRow = (key) => {
    const row = this.#rows.get(key);
    return row && row.expiresAt > this.#now ? row : undefined;
  };

  #write(writes: Writes): void {
    for (const [key, row] of writes) {
      const live = this.#rows.get(key);
      if (!row) {
        // A count of 0 is the same as no row. The row is removed when it expires.
        if (live) live.count = 0;
        continue;
      }
      if (!live) {
        this.#rows.set(key, { ...newRow(), ...row });
        this.#changing.add(key, row.expiresAt);
        continue;
      }
      live.window = row.window;
      live.count = row.count;
      live.expiresAt = row.expiresAt;
    }
  }

  /** Removes the rows that have expired. @param now never earlier than in earlier calls */
  advance(now: number): void {
    this.#now = now;
    if (now < this.#nextSecondAt) return;
    this.#nextSecondAt = (Math.floor(now / SECOND_MS) + 1) * SECOND_MS;
    for (let keys = this.#stored.takeExpired(now); keys; keys = this.#stored.takeExpired(now)) {
      for (const key of keys) this.#rows.delete(key);
    }
    for (let keys = this.#changing.takeExpired(now); keys; keys = this.#changing.takeExpired(now)) {
      for (const key of keys) this.#removeIfExpired(key, now);
    }
  }

  #removeIfExpired(key: string, now: number): void {
    const row = this.#rows.get(key);
    if (row && row.expiresAt <= now) this.#rows.delete(key);
    else if (row) this.#changing.add(key, row.expiresAt);
  }
}

/** Returns a store whose counters are in a table, and whose clock is that of the simulation. */
export function createRowStore(rows: RowTable): Store {
  return {
    decide(groups, now = Date.now(), unused = []) {
      rows.returnUnused(unused, now);
      return rows.decide(groups, now).map(async (answer) => ({ ...answer, now }));
    },
    async adjust(counters, now = Date.now(), unused = []) {
      rows.returnUnused(unused, now);
      return rows.adjust(counters, now);
    },
    reset: () => Promise.reject(new Error("A replay resets no counters.")),
  };
}
