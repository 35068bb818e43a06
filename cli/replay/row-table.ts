import type { Counter, ReadRow, Row, Tally, Writes } from "../../src/engine/counter.ts";
import { adjustGroup, decideGroup } from "../../src/engine/fixed-window.ts";
import { ExpiryQueue } from "../../src/stores/expiry-queue.ts";
import { isDependent, isEnforced, SKIPPED } from "../../src/stores/group-roles.ts";
import type { GroupAnswer } from "../../src/stores/store.ts";

const SECOND_MS = 1000;

/**
 * The counters of a replay: a store in memory without promises. It removes each row when its window is over
 * by the clock of the log, so its size follows from the live counters and not from the length of the log.
 */
export class RowTable {
  readonly #rows = new Map<string, Row>();
  /** The keys of the rows to look at in each second. Each row is in one list. */
  readonly #keysBySecond = new Map<number, string[]>();
  readonly #seconds = new ExpiryQueue();
  #now = Number.NEGATIVE_INFINITY;
  #nextSecondAt = Number.NEGATIVE_INFINITY;

  /** The number of rows, including those that expire within the current second. */
  get size(): number {
    return this.#rows.size;
  }

  /** Decides groups of counters, as `Store.decide` does. @param now never earlier than in earlier calls */
  decide(groups: readonly (readonly Counter[])[], now: number): GroupAnswer[] {
    this.#advance(now);
    let isDenied = false;
    return groups.map((counters) => {
      if (isDenied && isDependent(counters)) return SKIPPED;
      const { verdict, writes } = decideGroup(counters, now, this.#read);
      this.#write(writes);
      isDenied ||= !verdict.admitted && isEnforced(counters);
      return verdict;
    });
  }

  /** Adds each counter's cost to its count, as `Store.adjust` does. */
  adjust(counters: readonly Counter[], now: number): readonly Tally[] {
    this.#advance(now);
    const { tallies, writes } = adjustGroup(counters, now, this.#read);
    this.#write(writes);
    return tallies;
  }

  readonly #read: ReadRow = (key) => {
    const row = this.#rows.get(key);
    return row && row.expiresAt > this.#now ? row : undefined;
  };

  #write(writes: Writes): void {
    for (const [key, row] of writes) {
      // Neither a decision nor an adjustment removes rows.
      if (!row) continue;
      if (!this.#rows.has(key)) this.#plan(key, row);
      this.#rows.set(key, row);
    }
  }

  #plan(key: string, { expiresAt }: Row): void {
    const second = Math.ceil(expiresAt / SECOND_MS);
    const keys = this.#keysBySecond.get(second);
    if (keys) {
      keys.push(key);
      return;
    }
    this.#keysBySecond.set(second, [key]);
    this.#seconds.add(`${second}`, second * SECOND_MS);
  }

  /** Removes the rows that have expired. */
  #advance(now: number): void {
    this.#now = now;
    if (now < this.#nextSecondAt) return;
    this.#nextSecondAt = (Math.floor(now / SECOND_MS) + 1) * SECOND_MS;
    for (let next = this.#seconds.takeExpired(now); next; next = this.#seconds.takeExpired(now)) {
      const second = Number(next);
      const keys = this.#keysBySecond.get(second) ?? [];
      this.#keysBySecond.delete(second);
      for (const key of keys) {
        const row = this.#rows.get(key);
        if (!row) continue;
        if (row.expiresAt <= now) this.#rows.delete(key);
        else this.#plan(key, row);
      }
    }
  }
}
