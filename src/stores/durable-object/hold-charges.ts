import {
  type Counter,
  type GroupVerdict,
  type ReadRow,
  storedKey,
  windowAt,
} from "../../engine/counter.ts";

/** Charges that a decision has made in this object, and that can still be released. */
export interface Hold {
  readonly charges: readonly HeldCharge[];
  /** The time at which the charges were made, in milliseconds since the Unix epoch. */
  readonly now: number;
}

/** Quota that a hold has charged to a counter. */
export interface HeldCharge {
  readonly counter: Counter;
  readonly quota: number;
}

/** The charges of an admitted group. */
export function heldChargesOf(
  counters: readonly Counter[],
  { tallies }: GroupVerdict,
): HeldCharge[] {
  return counters.flatMap((counter, index) => {
    const { cost, checkOnly } = counter;
    const quota = checkOnly ? 0 : (tallies[index]?.charged ?? cost);
    return quota > 0 ? [{ counter, quota }] : [];
  });
}

/** Counters with negative costs, which take back the charges of a released hold. */
export function refundsOf({ charges, now }: Hold, read: ReadRow): Counter[] {
  return charges
    .filter(({ counter }) => !wasChargedLater(counter, now, read))
    .map(({ counter, quota }) => ({ ...counter, cost: -quota }));
}

/**
 * Whether a counter that rolls over was charged in a later window than the hold. The grant of the
 * later window may have repaid the hold's charge already. If the charge were taken back as well,
 * requests above the limit would be admitted.
 */
function wasChargedLater(counter: Counter, heldAt: number, read: ReadRow): boolean {
  const row = counter.rollsOver ? read(storedKey(counter, heldAt)) : undefined;
  return row !== undefined && row.window > windowAt(heldAt, counter).index;
}
