/** What may be admitted in a window. */
export type Bound = { limit: number; windowMs: number };

export type Excess = {
  name: string;
  client: string;
  window: number;
  admitted: number;
  bound: number;
};

type Count = Bound & {
  name: string;
  client: string;
  window: number;
  /** Admitted in this window for sure. */
  inside: number;
  /** Admitted in this window or in the next one: sent before its end and answered after it. */
  across: number;
};

/**
 * Counts what was admitted, by policy, client and window, and finds what is more than the limit.
 *
 * Windows are placed by the machine's clock, which the store's is too. All that is known of a request
 * is that it was decided between being sent and being answered; where a window ends in between, it is
 * held against both windows together.
 */
export class Ledger {
  readonly #counts = new Map<string, Count>();
  /** When the store lost all that it had counted. */
  readonly #losses: number[] = [];
  readonly excesses: Excess[] = [];
  /** Windows of clients that have been looked at. */
  windows = 0;

  record(name: string, client: string, bound: Bound, sentAt: number, answeredAt: number): void {
    const window = Math.floor(sentAt / bound.windowMs);
    const count = this.#countOf(name, client, bound, window);
    if (Math.floor(answeredAt / bound.windowMs) === window) count.inside += 1;
    else count.across += 1;
  }

  lostAt(time: number): void {
    this.#losses.push(time);
  }

  /** Looks at the windows that have ended, and forgets them. */
  close(now: number): void {
    for (const [key, count] of this.#counts) {
      // A window longer, since its neighbour has to be there.
      if ((count.window + 2) * count.windowMs + 1000 > now) continue;
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
    const known = this.#counts.get(key);
    if (known) return known;
    const count = { name, client, window, limit, windowMs, inside: 0, across: 0 };
    this.#counts.set(key, count);
    return count;
  }
}

function keyOf(name: string, client: string, window: number): string {
  return `${name} ${client} ${window}`;
}
