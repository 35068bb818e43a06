import {
  addRequests,
  addStoreSums,
  noRequests,
  noRuleSums,
  noStoreSums,
} from "../statistics/add-sums.ts";
import type { RequestSums, RuleSums, StoreSums } from "../statistics/sums.ts";

// A row of the statistics: JSON with the sums of requests and of the store, and the sums and peaks of all
// rules as 64-bit numbers. With the rules as JSON, it took too long to read and add up a year of 200 rules.

/** The sums of one bucket of time. */
export interface SumsRow {
  readonly requests: RequestSums;
  readonly store: StoreSums;
  readonly rules: RuleArray;
}

/** The columns of a row. */
export type StoredSums = StoredRules & { readonly head: string };

/**
 * The columns with rules, or parts of them. `peaks` is NULL in rows that an older version has written.
 * In a bucket in which no rule applied, `rules` is empty, and substr() of an empty blob is NULL.
 */
export type StoredRules = {
  readonly rules: ArrayBuffer | null;
  readonly peaks: ArrayBuffer | null;
};

/** Adds the column `peaks` to a table that an older version has created. */
export function addPeaksColumn(sql: SqlStorage, table: string): void {
  if (sql.exec(`SELECT * FROM ${table} LIMIT 0`).columnNames.includes("peaks")) return;
  sql.exec(`ALTER TABLE ${table} ADD COLUMN peaks BLOB`);
}

/** The order of the counts of a rule. A changed order or number of fields needs new tables. */
const RULE_COUNTS = [
  "requests",
  "allowed",
  "limited",
  "marked",
  "undecided",
  "shadowLimited",
] as const satisfies readonly (keyof RuleSums)[];

const COUNTS = RULE_COUNTS.length;

/** The number of bytes of one rule in the column `peaks`. */
export const PEAK_BYTES = Float64Array.BYTES_PER_ELEMENT;

/** The number of bytes of one rule in the column `rules`. */
export const RULE_BYTES = COUNTS * PEAK_BYTES;

const NO_RULES: StoredRules = { rules: null, peaks: null };

/** The sums of rules by slot, as an array of counts and an array of peaks. */
export class RuleArray {
  #counts: Float64Array;
  #peaks: Float64Array;

  constructor({ rules, peaks }: StoredRules = NO_RULES) {
    this.#counts = numbersOf(rules, COUNTS);
    this.#peaks = numbersOf(peaks, 1);
  }

  /** Adds the sums of a rule. */
  add(slot: number, sums: RuleSums): void {
    const start = slot * COUNTS;
    this.#counts = grown(this.#counts, start + COUNTS);
    for (const [i, field] of RULE_COUNTS.entries()) {
      this.#counts[start + i] = (this.#counts[start + i] as number) + sums[field];
    }
    this.#peaks = grown(this.#peaks, slot + 1);
    this.#peaks[slot] = Math.max(this.#peaks[slot] as number, sums.peak);
  }

  /** Adds the sums of all rules of another array. */
  addAll(other: RuleArray): void {
    const from = other.#counts;
    const to = grown(this.#counts, from.length);
    this.#counts = to;
    for (let i = 0; i < from.length; i++) to[i] = (to[i] as number) + (from[i] as number);
    const peaks = other.#peaks;
    const highest = grown(this.#peaks, peaks.length);
    this.#peaks = highest;
    for (let i = 0; i < peaks.length; i++) {
      highest[i] = Math.max(highest[i] as number, peaks[i] as number);
    }
  }

  /** Returns the sums of a rule; undefined if the rule has none. */
  read(slot: number): RuleSums | undefined {
    const start = slot * COUNTS;
    const sums = { ...noRuleSums(), peak: this.#peaks[slot] ?? 0 };
    let hasAny = false;
    for (const [i, field] of RULE_COUNTS.entries()) {
      sums[field] = this.#counts[start + i] ?? 0;
      hasAny ||= sums[field] !== 0;
    }
    return hasAny ? sums : undefined;
  }

  clear(slot: number): void {
    this.#counts.fill(0, slot * COUNTS, (slot + 1) * COUNTS);
    this.#peaks.fill(0, slot, slot + 1);
  }

  /** Returns the columns that store these sums. */
  toStored(): { readonly rules: ArrayBuffer; readonly peaks: ArrayBuffer } {
    return { rules: this.#counts.slice().buffer, peaks: this.#peaks.slice().buffer };
  }
}

/** Returns the numbers in a blob, without a rule at its end that has not all of its `count` numbers. */
function numbersOf(blob: ArrayBuffer | null, count: number): Float64Array {
  if (!blob) return new Float64Array(0);
  const ruleBytes = count * Float64Array.BYTES_PER_ELEMENT;
  return new Float64Array(blob, 0, Math.floor(blob.byteLength / ruleBytes) * count);
}

/** Returns an array with at least a number of elements; the new ones are 0. */
function grown(array: Float64Array, length: number): Float64Array {
  if (array.length >= length) return array;
  const larger = new Float64Array(length);
  larger.set(array);
  return larger;
}

export function emptyRow(): SumsRow {
  return { requests: noRequests(), store: noStoreSums(), rules: new RuleArray() };
}

/** Reads the column `head` of rows. Fields that an older version did not store are 0. */
export function readHeads(heads: readonly string[]): Omit<SumsRow, "rules">[] {
  const all = JSON.parse(`[${heads.join(",")}]`) as Omit<SumsRow, "rules">[];
  for (const { requests, store } of all) {
    addMissing(requests, NO_REQUESTS);
    addMissing(store, NO_STORE_SUMS);
  }
  return all;
}

const NO_REQUESTS = noRequests();
const NO_STORE_SUMS = noStoreSums();

function addMissing<Sums extends object>(to: Sums, zeros: Sums): void {
  for (const field in zeros) to[field] ??= structuredClone(zeros[field]);
}

export function readRow({ head, ...rules }: StoredSums): SumsRow {
  const [sums = { requests: noRequests(), store: noStoreSums() }] = readHeads([head]);
  return { ...sums, rules: new RuleArray(rules) };
}

export function headOf({ requests, store }: SumsRow): string {
  return JSON.stringify({ requests, store });
}

/** Adds the sums of a row, or of a minute without its rules. */
export function addHead(to: SumsRow, { requests, store }: Omit<SumsRow, "rules">): void {
  addRequests(to.requests, requests);
  addStoreSums(to.store, store);
}
