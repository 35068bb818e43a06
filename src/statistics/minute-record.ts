import {
  addRequests,
  addRuleSums,
  addStoreSums,
  noRequests,
  noRuleSums,
  noStoreSums,
} from "./add-sums.ts";
import { MINUTE_MS, type MinuteSums, type RuleSums } from "./sums.ts";

/**
 * The maximum number of minutes that an isolate keeps. If the sums cannot be handed over for longer, the
 * oldest minutes are added up: the totals stay correct, but the sums belong to a later minute.
 */
export const MAX_MINUTES = 5;

/** The sums of a minute while they are being added up. */
export class MinuteRecord {
  readonly minute: number;
  readonly requests = noRequests();
  readonly store = noStoreSums();
  readonly #rules = new Map<string, RuleSums>();

  constructor(minute: number) {
    this.minute = minute;
  }

  /** Returns the sums of a rule, to which the caller adds. */
  ruleSums(name: string): RuleSums {
    let sums = this.#rules.get(name);
    if (!sums) {
      sums = noRuleSums();
      this.#rules.set(name, sums);
    }
    return sums;
  }

  /** Adds the sums of another minute. */
  add(other: MinuteRecord): void {
    addRequests(this.requests, other.requests);
    addStoreSums(this.store, other.store);
    for (const [name, sums] of other.#rules) addRuleSums(this.ruleSums(name), sums);
  }

  /** Returns the sums as plain data. */
  toSums(): MinuteSums {
    const { minute, requests, store } = this;
    return { minute, requests, store, rules: Object.fromEntries(this.#rules) };
  }
}

/** The sums of the last minutes, at most {@link MAX_MINUTES} of them. */
export class MinuteRecords {
  #records: MinuteRecord[] = [];

  get isEmpty(): boolean {
    return this.#records.length === 0;
  }

  /** Returns the sums of the minute of a time. */
  at(now: number): MinuteRecord {
    const minute = Math.floor(now / MINUTE_MS);
    const latest = this.#records.at(-1);
    return latest?.minute === minute ? latest : this.#findOrAdd(minute);
  }

  /** Returns all sums, and begins to add up anew. */
  take(): MinuteSums[] {
    const minutes = this.#records.map((record) => record.toSums());
    this.#records = [];
    return minutes;
  }

  #findOrAdd(minute: number): MinuteRecord {
    // The clock may have gone back.
    const known = this.#records.find((record) => record.minute === minute);
    if (known) return known;
    const record = new MinuteRecord(minute);
    this.#records.push(record);
    if (this.#records.length > MAX_MINUTES) {
      const oldest = this.#records.shift();
      if (oldest) this.#records[0]?.add(oldest);
    }
    return record;
  }
}
