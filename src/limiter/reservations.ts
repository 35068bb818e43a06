import { type Adjustment, type Refund, windowAt, withCost } from "../engine/counter.ts";
import type { Answer } from "../stores/store.ts";
import type { RuleCounter } from "./counters.ts";
import { chargedWindowOf, quotasOf } from "./decision.ts";

// What an admitted request has reserved of later windows, and how it is given back if the request does not pass.

/** The decision on the enforced rules, and the counters that were decided. */
export interface Decided {
  readonly counters: readonly RuleCounter[];
  readonly answer: Answer;
}

/** Returns what to give back if the request is not let through. */
export function refundsOf({ counters, answer }: Decided, delaysMs: readonly number[] = []) {
  const refunds = { reserved: [] as Refund[], others: [] as Adjustment[] };
  for (const [at, { counter, capacity }] of counters.entries()) {
    const tally = answer.tallies[at];
    if (counter.checkOnly || counter.slot !== undefined || !tally) continue;
    const chargedIn = chargedWindowOf(counter, tally, answer.now);
    const refund = { ...withCost(counter, -counter.cost), chargedIn };
    if ((delaysMs[at] ?? 0) > 0) refunds.reserved.push({ ...refund, upTo: tally.count });
    else {
      // While nobody waits, the order of the charges does not matter, unless later windows may have repaid them.
      const upTo = capacity > counter.limit ? tally.count : Math.max(tally.count, capacity);
      refunds.others.push({ ...refund, upTo });
    }
  }
  return refunds;
}

/** Returns for each counter the time in milliseconds until later windows have granted the reserved quota. */
export function delaysOf({ counters, answer }: Decided): number[] {
  if (!answer.admitted || !counters.some(isReserving)) return [];
  // The answer to an admitted request has a tally for each counter.
  return quotasOf(counters, answer).map(({ reservationDelayMs }) => reservationDelayMs);
}

function isReserving({ counter, capacity }: RuleCounter): boolean {
  return counter.ceiling > capacity;
}

/**
 * Returns the time in milliseconds until the first window ends whose quota the request has reserved or charged. A
 * request that waits for one counter may miss the window of another one.
 */
export function windowsEndMs({ counters, answer }: Decided, delaysMs: readonly number[]): number {
  const ends = counters.map(({ counter, window }, at) => {
    if (window.maxReserved === 0) return Number.POSITIVE_INFINITY;
    const ownMs = delaysMs[at] ?? 0;
    return ownMs > 0 ? ownMs + counter.windowMs : (answer.tallies[at]?.resetMs ?? 0);
  });
  return Math.min(...ends);
}

/** Returns a decision whose reserved quota belongs to windows that have begun, so that it can be settled there. */
export function begun(
  { counters, answer }: Decided,
  delaysMs: readonly number[],
  window: number | undefined,
): Decided {
  const tallies = answer.tallies.map((tally, at) => {
    const { counter } = counters[at] as RuleCounter;
    const delayMs = delaysMs[at] ?? 0;
    const chargedIn = window ?? windowAt(answer.now + delayMs, counter).index;
    return tally && delayMs > 0 ? { ...tally, chargedIn } : tally;
  });
  return { counters, answer: { ...answer, tallies } };
}

/** Returns the denial of a request whose charges are given back. */
export function withoutCharge({ counters, answer }: Decided): Decided {
  const tallies = answer.tallies.map((tally, at) => {
    const { cost, checkOnly } = (counters[at] as RuleCounter).counter;
    return tally && !checkOnly ? { ...tally, count: Math.max(0, tally.count - cost) } : tally;
  });
  return { counters, answer: { ...answer, admitted: false, tallies } };
}

/** Returns the denial of a request that may reserve nothing. So the limits that it exceeds without waiting deny it. */
export function atCapacity({ counters, answer }: Decided): Decided {
  const own = counters.map((each) => ({
    ...each,
    counter: { ...each.counter, ceiling: each.capacity },
  }));
  return { counters: own, answer };
}
