import {
  addRequests,
  addStoreSums,
  noRequests,
  noRuleSums,
  noStoreSums,
} from "../statistics/add-sums.ts";
import type { RequestSums, RuleSums, StoreSums } from "../statistics/sums.ts";

// A row of the statistics: JSON with the sums of requests and of the store, and the sums of all rules as
// 64-bit numbers. With the rules as JSON, it took too long to read and add up a year of 200 rules.

/** The sums of one bucket of time. */
export interface SumsRow {
  readonly requests: RequestSums;
  readonly store: StoreSums;
  readonly rules: RuleArray;
}

/** The columns of a row. */
export type StoredSums = { readonly head: string; readonly rules: ArrayBuffer };

/** The order of the numbers of a rule. A changed order or number of fields needs new tables. */
const RULE_FIELDS = [
  "requests",
  "allowed",
  "limited",
  "marked",
  "undecided",
  "shadowLimited",
] as const satisfies readonly (keyof RuleSums)[];

const FIELDS = RULE_FIELDS.length;

/** The number of bytes of one rule in the column `rules`. */
export const RULE_BYTES = FIELDS * Float64Array.BYTES_PER_ELEMENT;

/** The sums of rules by slot, in one array of numbers. */
export class RuleArray {
  #numbers: Float64Array;

  constructor(stored: ArrayBuffer = new ArrayBuffer(0)) {
    this.#numbers = new Float64Array(
      stored,
      0,
      Math.floor(stored.byteLength / RULE_BYTES) * FIELDS,
    );
  }

  /** Adds the sums of a rule. */
  add(slot: number, sums: RuleSums): void {
    const start = slot * FIELDS;
    this.#grow(start + FIELDS);
    for (const [i, field] of RULE_FIELDS.entries()) {
      this.#numbers[start + i] = (this.#numbers[start + i] as number) + sums[field];
    }
  }

  /** Adds the sums of all rules of another array. */
  addAll({ numbers }: { readonly numbers: Float64Array }): void {
    this.#grow(numbers.length);
    const to = this.#numbers;
    for (let i = 0; i < numbers.length; i++) to[i] = (to[i] as number) + (numbers[i] as number);
  }

  get numbers(): Float64Array {
    return this.#numbers;
  }

  /** Returns the sums of a rule; undefined if the rule has none. */
  read(slot: number): RuleSums | undefined {
    const start = slot * FIELDS;
    const sums = noRuleSums();
    let hasAny = false;
    for (const [i, field] of RULE_FIELDS.entries()) {
      sums[field] = this.#numbers[start + i] ?? 0;
      hasAny ||= sums[field] !== 0;
    }
    return hasAny ? sums : undefined;
  }

  clear(slot: number): void {
    this.#numbers.fill(0, slot * FIELDS, (slot + 1) * FIELDS);
  }

  toBuffer(): ArrayBuffer {
    return this.#numbers.slice().buffer;
  }

  #grow(length: number): void {
    if (this.#numbers.length >= length) return;
    const larger = new Float64Array(length);
    larger.set(this.#numbers);
    this.#numbers = larger;
  }
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

export function readRow({ head, rules }: StoredSums): SumsRow {
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
