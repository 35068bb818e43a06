import {
  type Counter,
  type GroupVerdict,
  type ReadRow,
  storedKey,
  windowAt,
} from "../../engine/counter.ts";

/** The charges that a decision has made in this object, while they can be released. */
export interface Hold {
  readonly charges: readonly Charge[];
  /** The time at which it was charged, in milliseconds since the Unix epoch. */
  readonly now: number;
}

/** Quota that a hold has charged to a counter. */
export interface Charge {
  readonly counter: Counter;
  readonly quota: number;
}

/** The charges of an admitted group. */
export function chargesOf(counters: readonly Counter[], { tallies }: GroupVerdict): Charge[] {
  return counters.flatMap((counter, index) => {
    const { cost, checkOnly } = counter;
    const quota = checkOnly ? 0 : (tallies[index]?.charged ?? cost);
    return quota > 0 ? [{ counter, quota }] : [];
  });
}

/** The charges of a released hold as counters with negative costs. */
export function refundsOf({ charges, now }: Hold, read: ReadRow): Counter[] {
  return charges
    .filter(({ counter }) => !wasChargedLater(counter, now, read))
    .map(({ counter, quota }) => ({ ...counter, cost: -quota }));
}

/**
 * Whether a counter that rolls over was charged in a window after the hold's. The grant of that window
 * may have repaid the held quota already. Returning it as well would admit a request too many.
 */
function wasChargedLater(counter: Counter, heldAt: number, read: ReadRow): boolean {
  const row = counter.rollsOver ? read(storedKey(counter, heldAt)) : undefined;
  return row !== undefined && row.window > windowAt(heldAt, counter).index;
}
