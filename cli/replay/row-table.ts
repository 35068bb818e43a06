import {
  type Counter,
  MAX_COUNT,
  type ReadRow,
  storedKey,
  type Tally,
  type UnusedQuota,
  type Writes,
  windowAt,
} from "../../src/engine/counter.ts";
import {
  adjustGroup,
  chargeOf,
  decideGroup,
  EXPIRY_GRACE_MS,
  hasQuota,
  returnUnused,
} from "../../src/engine/fixed-window.ts";
import { ExpiryQueue } from "../../src/stores/expiry-queue.ts";
import { isDependent, isEnforced, SKIPPED } from "../../src/stores/group-roles.ts";
import type { GroupAnswer } from "../../src/stores/store.ts";
import type { LiveRow, RememberedClient } from "./applied-client.ts";

const SECOND_MS = 1000;

/**
 * The counters of a replay: a store in memory without promises. It removes each row when its window is over
 * by the clock of the log, so its size follows from the live counters and not from the length of the log.
 */
export class RowTable {
  readonly #rows = new Map<string, LiveRow>();
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
    let isDenied = false;
    return groups.map((counters) => {
      if (isDenied && isDependent(counters)) return SKIPPED;
      const answer = this.decideGroup(counters, now);
      isDenied ||= !answer.admitted && isEnforced(counters);
      return answer;
    });
  }

  /** Decides one group. @param now never earlier than in earlier calls */
  decideGroup(counters: readonly Counter[], now: number): GroupAnswer {
    this.#advance(now);
    const { verdict, writes } = decideGroup(counters, now, this.#read);
    this.#write(writes);
    return verdict;
  }

  /** Adds each counter's cost to its count, as `Store.adjust` does. */
  adjust(counters: readonly Counter[], now: number): readonly Tally[] {
    this.#advance(now);
    const { tallies, writes } = adjustGroup(counters, now, this.#read);
    this.#write(writes);
    return tallies;
  }

  /** Subtracts quota that isolates return, as `Store.decide` does. */
  returnUnused(unused: readonly UnusedQuota[], now: number): void {
    if (unused.length === 0) return;
    this.#advance(now);
    this.#write(returnUnused(unused, now, this.#read));
  }

  /**
   * Decides one group: the counters of several clients of one request, one after the other. Does the same as
   * {@link RowTable.decideGroup} in less time.
   */
  decideClients(clients: readonly RememberedClient[], now: number): GroupAnswer {
    this.#advance(now);
    let admitted = true;
    for (const client of clients) if (!this.#hasQuota(client, now)) admitted = false;
    const [first] = clients;
    // An array of the right size takes less time than one that grows.
    if (clients.length === 1 && first?.rows.length === 1) {
      return { admitted, tallies: [this.#charge(first, 0, admitted, now)] };
    }
    const tallies: Tally[] = [];
    for (const client of clients) {
      for (let index = 0; index < client.rows.length; index++) {
        tallies.push(this.#charge(client, index, admitted, now));
      }
    }
    return { admitted, tallies };
  }

  /** Whether all counters of a client have quota left. Updates the client's rows. */
  #hasQuota({ template, rows, identity }: RememberedClient, now: number): boolean {
    let hasAll = true;
    for (let index = 0; index < rows.length; index++) {
      const counter = template.counters[index] as Counter;
      const { index: window } = windowAt(now, counter);
      if (rows[index]?.window !== window) {
        const found = this.#rows.get(keyOf(counter, identity, now));
        if (found) rows[index] = found;
      }
      const row = rows[index] as LiveRow;
      if (!hasQuota(counter, row.window === window ? row.count : 0)) hasAll = false;
    }
    return hasAll;
  }

  /** Charges a counter of a client whose rows are up to date. */
  #charge(
    { template, rows, identity }: RememberedClient,
    index: number,
    admitted: boolean,
    now: number,
  ): Tally {
    const counter = template.counters[index] as Counter;
    const row = rows[index] as LiveRow;
    const { index: window, endsAt } = windowAt(now, counter);
    const isCurrent = row.window === window;
    const count = isCurrent ? row.count : 0;
    const charge = admitted ? chargeOf(counter, count) : 0;
    if (charge > 0 && isCurrent) row.count = count + charge;
    else if (charge > 0) {
      const expiresAt = Math.min(endsAt + EXPIRY_GRACE_MS, MAX_COUNT);
      const created = { window, count: charge, expiresAt };
      rows[index] = created;
      this.#add(keyOf(counter, identity, now), created);
    }
    return { count: count + charge, resetMs: endsAt - now, banMs: 0 };
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
        this.#add(key, { ...row });
        continue;
      }
      live.window = row.window;
      live.count = row.count;
      live.expiresAt = row.expiresAt;
    }
  }

  #add(key: string, row: LiveRow): void {
    this.#rows.set(key, row);
    this.#plan(key, row);
  }

  #plan(key: string, { expiresAt }: LiveRow): void {
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

/** Returns the key of the row that a client has in place of a client with an empty identity. */
function keyOf(counter: Counter, identity: string, now: number): string {
  return storedKey({ ...counter, key: counter.key + identity }, now);
}
