import { banKey } from "./bans.ts";
import {
  type Counter,
  MAX_COUNT,
  type ReadRow,
  type Row,
  storedKey,
  windowAt,
  windowStart,
} from "./counter.ts";

/** The state of a counter at the time `now`. */
interface CounterState {
  /** The quota used in this window, and quota of earlier windows that is not repaid yet. */
  readonly count: number;
  /** The window that `count` belongs to; never earlier than the window of the last charge. */
  readonly window: number;
  /** Milliseconds until that window ends. */
  readonly resetMs: number;
  readonly banMs: number;
  /** The stored row; undefined if there is none. */
  readonly row: Row | undefined;
}

function stateOf(counter: Counter, now: number, read: ReadRow): CounterState {
  const { index, endsAt } = windowAt(now, counter);
  const ban = counter.banMs ? read(banKey(counter)) : undefined;
  const banMs = ban ? ban.expiresAt - now : 0;
  const row = read(storedKey(counter, now));
  if (!row) return { count: 0, window: index, resetMs: endsAt - now, banMs, row };
  // The window never goes back, because otherwise it would grant its quota twice after a clock is
  // set back.
  const window = Math.max(index, row.window);
  const granted = counter.rollsOver ? (window - row.window) * counter.limit : 0;
  const windowEndsAt = window === index ? endsAt : windowStart(counter, window + 1);
  const resetMs = Math.min(MAX_COUNT, windowEndsAt - now);
  return { count: Math.max(0, row.count - granted), window, resetMs, banMs, row };
}

/** The counter that a decision uses: the requested counter or its alternative. */
export interface ChosenCounter extends CounterState {
  readonly counter: Counter;
  /** The difference between the reported count and `count`: see {@link Counter.alternative}. */
  readonly countOffset: number;
}

/**
 * Chooses between a counter and its alternative. Charges go to the counter with more quota left,
 * and refunds to the other counter.
 */
export function chooseCounter(counter: Counter, now: number, read: ReadRow): ChosenCounter {
  const state = stateOf(counter, now, read);
  const { alternative } = counter;
  if (alternative) {
    const other = stateOf(alternative, now, read);
    const hasMore = alternative.ceiling - other.count > counter.ceiling - state.count;
    if (hasMore === counter.cost >= 0) {
      return { ...other, counter: alternative, countOffset: counter.ceiling - alternative.ceiling };
    }
  }
  return { ...state, counter, countOffset: 0 };
}
