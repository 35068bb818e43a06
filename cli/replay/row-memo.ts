import type { Counter, Row } from "../../src/engine/counter.ts";

/** A row that writes change in place, so that counters can keep a reference to it. */
export type LiveRow = { -readonly [Field in keyof Row]: Row[Field] };

/**
 * A counter that remembers its row. Then most decisions neither build a key nor look one up, which would take
 * longer than the decision. Only counters with one row for each window, and without bans, are such counters.
 */
export interface MemoCounter extends Counter {
  /** The last row of the counter that was found: of this window, or of an earlier one. */
  row: LiveRow;
}

/** The row of a counter that had none. It belongs to no window. */
const NO_ROW: LiveRow = { window: Number.MIN_SAFE_INTEGER, count: 0, expiresAt: 0 };

/** Adds a memo to a counter, if it can have one. Each copy of a counter needs a memo of its own. */
export function withMemo(counter: Counter): Counter {
  if (counter.rollsOver || counter.banMs !== undefined || counter.alternative) return counter;
  const memo: MemoCounter = { ...counter, row: NO_ROW };
  return memo;
}

/** Whether all counters of a group have a memo. */
export function haveMemos(counters: readonly Counter[]): counters is readonly MemoCounter[] {
  for (const counter of counters) if ((counter as MemoCounter).row === undefined) return false;
  return true;
}
