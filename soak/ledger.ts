/** The limit of a policy. */
export interface Bound {
  readonly limit: number;
  readonly windowMs: number;
}

/** A window in which more requests were admitted than its limit allows. */
export interface Excess {
  readonly name: string;
  readonly client: string;
  readonly window: number;
  readonly admitted: number;
  readonly bound: number;
}

interface Count extends Bound {
  readonly name: string;
  readonly client: string;
  readonly window: number;
  /** Requests that were sent and answered in this window. */
  inside: number;
  /**
   * Requests that were sent in this window and answered after its end. Either this window or the
   * next window may have admitted them.
   */
  across: number;
}

/** The maximum difference between the clocks of this process and of the store, in milliseconds. */
const CLOCK_MARGIN_MS = 1000;

/**
 * Counts admitted requests by policy, client and window, and finds windows that admitted more than their limit.
 *
 * The ledger and the store use the machine's clock. A request is decided at an unknown time between its sending and its
 * answer. If a window ends between these two times, the ledger compares the requests of this window and the next one
 * with the sum of both limits.
 */
export class Ledger {
  readonly #counts = new Map<string, Count>();
  /** The times at which the store lost its counters. */
  readonly #losses: number[] = [];
  readonly excesses: Excess[] = [];
  /** The number of windows that have been checked. Each client has its own windows. */
  windows = 0;

  /** Records an admitted request. */
  record(name: string, client: string, bound: Bound, sentAt: number, answeredAt: number): void {
    const window = Math.floor(sentAt / bound.windowMs);
    const count = this.#countOf(name, client, bound, window);
    if (Math.floor(answeredAt / bound.windowMs) === window) count.inside += 1;
    else count.across += 1;
  }

  /**
   * Records that the store lost its counters. The windows that contain this time may admit their
   * limit twice.
   */
  recordLoss(time: number): void {
    this.#losses.push(time);
  }

  /** Checks the windows that have ended before `now`, and deletes them. */
  checkUntil(now: number): void {
    for (const [key, count] of this.#counts) {
      // The check also needs the counts of the next window, so the next window must have ended too.
      if ((count.window + 2) * count.windowMs + CLOCK_MARGIN_MS > now) continue;
      this.#check(count);
      this.#counts.delete(key);
    }
  }

  #check(count: Count): void {
    this.windows += 1;
    const { name, client, window, limit, inside, across } = count;
    const next = this.#counts.get(keyOf(name, client, window + 1));
    const bound = limit * (1 + this.#lossesIn(count, 1));
    if (inside > bound) this.excesses.push({ name, client, window, admitted: inside, bound });
    const both = inside + across + (next?.inside ?? 0);
    const boundOfBoth = limit * (2 + this.#lossesIn(count, 2));
    if (both > boundOfBoth) {
      this.excesses.push({ name, client, window, admitted: both, bound: boundOfBoth });
    }
  }

  #lossesIn({ window, windowMs }: Count, windows: number): number {
    const [from, to] = [window * windowMs, (window + windows) * windowMs];
    return this.#losses.filter((time) => from <= time && time < to).length;
  }

  #countOf(name: string, client: string, { limit, windowMs }: Bound, window: number): Count {
    const key = keyOf(name, client, window);
    let count = this.#counts.get(key);
    if (!count) {
      count = { name, client, window, limit, windowMs, inside: 0, across: 0 };
      this.#counts.set(key, count);
    }
    return count;
  }
}

function keyOf(name: string, client: string, window: number): string {
  return `${name} ${client} ${window}`;
}
