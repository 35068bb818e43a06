import { IDLE_MS } from "../../src/stores/isolate/lease-book.ts";
import type { Account, Ledger } from "./ledger.ts";

/**
 * The places where unused quota can be at the end of a window: isolates that had ended ("dead"), isolates without a
 * request of the client for {@link IDLE_MS} ("quiet"), all other isolates ("busy"), and the store ("store"). The store
 * has unused quota if an isolate returned it too late for other requests, or if isolates denied requests from memory.
 */
export const PLACES = ["dead", "quiet", "busy", "store"] as const;
export type Place = (typeof PLACES)[number];

/** The result of one run. Numbers without a unit count requests. */
export interface RunResult {
  offered: number;
  admitted: number;
  /** Requests that were not decided before the deadline. */
  undecided: number;
  /** Requests whose isolate ended while they waited for a decision. */
  lostWithIsolate: number;
  /** Requests admitted above the limit of a window. */
  over: number;
  /** Requests that an isolate admitted beyond the quota that was charged to it. */
  overdrawn: number;
  /** Windows whose count in the store differs from the quota charged minus the quota returned. */
  miscounted: number;
  /** Requests admitted from a lease after the end of its window, by the store's clock. */
  afterWindow: number;
  /** How late the latest request in `afterWindow` was, in milliseconds after the window's end. */
  mostAfterWindowMs: number;
  /**
   * The number of requests that the limits allow, summed over all windows. In a window, this is the
   * number of decided requests or the limit, whichever is smaller.
   */
  admissible: number;
  /**
   * The number of requests that were denied although the limit allowed them, summed over all
   * windows.
   */
  wronglyDenied: number;
  /**
   * The number of wrongly denied requests for each place of the unused quota that could have
   * admitted them.
   */
  wronglyDeniedBy: Record<Place, number>;
  /**
   * In the worst window: the number of wrongly denied requests divided by the limit, from 0 to 1.
   */
  worstWindowShare: number;
  /** Calls to the store, including calls that fetch blocks in the background. */
  calls: number;
  /**
   * The number of leases whose unused quota was returned, and the quota that the store took back.
   */
  returnedLeases: number;
  returnedQuota: number;
  /** Requests decided without an answer from the store. */
  fromMemory: number;
  /** How long each request waited for its decision, in milliseconds. */
  waits: number[];
}

export function emptyResult(): RunResult {
  return {
    offered: 0,
    admitted: 0,
    undecided: 0,
    lostWithIsolate: 0,
    over: 0,
    overdrawn: 0,
    miscounted: 0,
    afterWindow: 0,
    mostAfterWindowMs: 0,
    admissible: 0,
    wronglyDenied: 0,
    wronglyDeniedBy: { dead: 0, quiet: 0, busy: 0, store: 0 },
    worstWindowShare: 0,
    calls: 0,
    returnedLeases: 0,
    returnedQuota: 0,
    fromMemory: 0,
    waits: [],
  };
}

/**
 * Adds the ledger's figures to the result of a run that has ended.
 *
 * @param countOf returns the store's count of a client in the window that contains the time `at`
 */
export async function audit(
  result: RunResult,
  ledger: Ledger,
  limit: number,
  countOf: (client: number, at: number) => Promise<number>,
): Promise<void> {
  const { calls, returnedLeases, returnedQuota, fromMemory, afterWindow, mostAfterWindowMs } =
    ledger;
  Object.assign(result, { calls, returnedLeases, returnedQuota, fromMemory });
  Object.assign(result, { afterWindow, mostAfterWindowMs });
  for (const account of ledger.accounts) {
    const { client, endsAt, admitted, decided, charged } = account;
    result.over += Math.max(0, admitted - limit);
    if ((await countOf(client, endsAt - 1)) !== charged) result.miscounted++;
    const unspent = unspentOf(account);
    result.overdrawn += unspent.overdrawn;

    const admissible = Math.min(decided, limit);
    const wronglyDenied = Math.max(0, admissible - admitted);
    result.admissible += admissible;
    result.wronglyDenied += wronglyDenied;
    result.worstWindowShare = Math.max(result.worstWindowShare, wronglyDenied / limit);
    const places = { ...unspent, store: limit - charged };
    let unexplained = wronglyDenied;
    for (const place of PLACES) {
      const explained = Math.min(unexplained, places[place]);
      result.wronglyDeniedBy[place] += explained;
      unexplained -= explained;
    }
  }
}

/**
 * Returns the charged quota of an account that was unused at the end of the window, by the state of the isolate that
 * held it (`dead`, `quiet`, `busy`). `overdrawn` is the quota that isolates used without a charge.
 */
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
