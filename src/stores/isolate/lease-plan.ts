import { type Counter, type Tally, windowAt } from "../../engine/counter.ts";
import { hasQuota } from "../../engine/fixed-window.ts";
import type { GroupAnswer } from "../store.ts";
import { type Lease, quotaOf, type Taken } from "./lease-book.ts";
import { type CounterSnapshot, tallyOf } from "./snapshot.ts";

/** How one counter of a group is to be decided. */
export interface CounterPlan {
  readonly counter: Counter;
  readonly lease?: Lease | undefined;
  /** What was taken from the lease. */
  readonly taken?: Taken;
  /** What the lease was good for: a refund may empty it before the decision is there. */
  readonly basis?: { readonly snapshot: CounterSnapshot; readonly unspent: number };
  /** What is asked of the store; undefined where the lease is enough. */
  readonly request?: Counter;
  /** Whether all that is asked is for later, and nothing of it for a request. */
  readonly isAhead?: boolean;
}

/** What became of a group: the answer is about what was asked of it. */
export interface GroupResult {
  readonly parts: readonly CounterPlan[];
  readonly answer: GroupAnswer;
}

/** The verdict on a group that leases are enough for. */
export const ADMITTED_FROM_LEASES: GroupAnswer = { admitted: true, tallies: [] };

export function needsStore(parts: readonly CounterPlan[]): boolean {
  return parts.some(({ request: asked }) => asked);
}

/** What is left for later of what an admitted counter was charged. */
export function leftOf(
  { cost, checkOnly }: Counter,
  { charged = cost }: Tally,
  isAhead: boolean,
): number {
  if (checkOnly) return 0;
  return isAhead ? charged : charged - cost;
}

/** The parts of a group, each with what the store has said of it, if it was asked. */
function answered({
  parts,
  answer,
}: GroupResult): { part: CounterPlan; tally: Tally | undefined }[] {
  const tallies = answer.tallies.values();
  return parts.map((part) => ({ part, tally: part.request && tallies.next().value }));
}

/**
 * Whether a group was denied for nothing but quota that lies here by now: another request's block
 * has come in meanwhile, with the last of the quota in it.
 */
export function coveredByNow(result: GroupResult, now: number): boolean {
  if (result.answer.admitted) return false;
  const full = answered(result).filter(({ part, tally }) => tally && isFull(part, tally));
  const isHere = ({ part: { lease, counter } }: (typeof full)[number]) =>
    lease !== undefined && counter.cost > 0 && quotaOf(lease, now) >= counter.cost;
  return full.length > 0 && full.every(isHere);
}

function isFull({ request: asked }: CounterPlan, { count, banMs }: Tally): boolean {
  return asked !== undefined && (banMs > 0 || !hasQuota(asked, count));
}

/** The answer for a group: its counts are the store's, less the quota leased here and not used yet. */
export function answerOf({ parts, answer }: GroupResult, storeNow: number): GroupAnswer {
  const { admitted, later } = answer;
  if (later) {
    const assembled = later.then(({ now, groups: [late] }) => ({
      now,
      groups: [answerOf({ parts, answer: late as GroupAnswer }, now)],
    }));
    // Who asked may not want to know.
    assembled.catch(() => {});
    return { ...answer, later: assembled };
  }
  const tallies = answered({ parts, answer }).map(({ part, tally }): Tally | undefined => {
    const { counter, lease, request: asked, basis } = part;
    if (asked && !tally) return undefined;
    const known = lease?.snapshot ?? basis?.snapshot;
    const unspent = lease?.snapshot ? lease.quota : (basis?.unspent ?? 0);
    const reported = tally ?? tallyOf(known as CounterSnapshot, storeNow);
    const { resetMs, banMs } = reported;
    const isCurrent = known?.window === windowAt(storeNow, counter).index;
    const count = Math.max(0, reported.count - (isCurrent ? unspent : 0));
    // What came in after the denial does not undo it.
    const isDenied = !admitted && tally !== undefined && isFull(part, tally);
    return { count: isDenied && hasQuota(counter, count) ? reported.count : count, resetMs, banMs };
  });
  return { admitted, tallies };
}
