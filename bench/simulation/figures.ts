import { IDLE_MS } from "../../src/stores/isolate/lease-book.ts";
import type { Account, Ledger } from "./ledger.ts";

/**
 * Where a window's quota lay that nobody used before its end: with isolates that had died, with such
 * as had not been asked for some time, with others; or in the store, where it came back too late or
 * where denials were told from memory meanwhile.
 */
export const PLACES = ["dead", "quiet", "busy", "store"] as const;
export type Place = (typeof PLACES)[number];

/** What came of a run: counts of requests, unless it says otherwise. */
export interface Figures {
  offered: number;
  admitted: number;
  /** Not decided within the deadline. */
  undecided: number;
  /** Waited for a decision when their isolate died. */
  lost: number;
  /** Admitted above a window's limit. */
  over: number;
  /** Admitted by an isolate with more of a window's quota than was charged to it. */
  overdrawn: number;
  /** Counts of the store that are not what was charged and given back. */
  miscounted: number;
  /** Admitted from a lease whose window had ended by the store's clock. */
  late: number;
  /** By how many milliseconds at most. */
  latestMs: number;
  /** Decided requests that were within the limits, whoever came first: min(decided, limit). */
  rightful: number;
  /** Of these, how many more were denied than had to be. */
  missed: number;
  /** Of the missed, for how many quota lay unspent, and where. */
  missedBy: Record<Place, number>;
  /** The largest part of one window's limit that was missed, from 0 to 1. */
  worstMissed: number;
  /** Calls of the store, blocks fetched ahead and all. */
  calls: number;
  /** Leases given back, and how much quota that was still good for. */
  givenBack: number;
  quotaGivenBack: number;
  /** Decided without a call of their own. */
  fromMemory: number;
  /** How long each request waited, in milliseconds. */
  waits: number[];
}

export function noFigures(): Figures {
  return {
    offered: 0,
    admitted: 0,
    undecided: 0,
    lost: 0,
    over: 0,
    overdrawn: 0,
    miscounted: 0,
    late: 0,
    latestMs: 0,
    rightful: 0,
    missed: 0,
    missedBy: { dead: 0, quiet: 0, busy: 0, store: 0 },
    worstMissed: 0,
    calls: 0,
    givenBack: 0,
    quotaGivenBack: 0,
    fromMemory: 0,
    waits: [],
  };
}

/** What the accounts say when all is over. */
export async function audit(
  figures: Figures,
  ledger: Ledger,
  limit: number,
  countOf: (client: number, at: number) => Promise<number>,
): Promise<void> {
  const { calls, givenBack, quotaGivenBack, fromMemory, late, latestMs } = ledger;
  Object.assign(figures, { calls, givenBack, quotaGivenBack, fromMemory, late, latestMs });
  for (const account of ledger.accounts) {
    const { client, endsAt, admitted, decided, charged } = account;
    figures.over += Math.max(0, admitted - limit);
    if ((await countOf(client, endsAt - 1)) !== charged) figures.miscounted++;
    const unspent = unspentOf(account);
    figures.overdrawn += unspent.overdrawn;

    const rightful = Math.min(decided, limit);
    const missed = Math.max(0, rightful - admitted);
    figures.rightful += rightful;
    figures.missed += missed;
    figures.worstMissed = Math.max(figures.worstMissed, missed / limit);
    const places = { ...unspent, store: limit - charged };
    let unexplained = missed;
    for (const place of PLACES) {
      const explained = Math.min(unexplained, places[place]);
      figures.missedBy[place] += explained;
      unexplained -= explained;
    }
  }
}

/** Where an account's quota lay when its window ended. */
function unspentOf({ shares, endsAt }: Account) {
  const unspent = { dead: 0, quiet: 0, busy: 0, overdrawn: 0 };
  for (const [isolate, share] of shares) {
    if (share.unspent < 0) unspent.overdrawn -= share.unspent;
    else if (isolate.diedAt !== undefined && isolate.diedAt < endsAt) unspent.dead += share.unspent;
    else if (endsAt - share.usedAt >= IDLE_MS) unspent.quiet += share.unspent;
    else unspent.busy += share.unspent;
  }
  return unspent;
}
