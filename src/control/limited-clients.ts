import type { LimitedClient } from "../statistics/sums.ts";

/** The maximum number of clients that a sketch returns. */
export const SKETCH_SIZE = 256;

/**
 * The clients that were limited most often, with a bounded number of entries.
 *
 * When there are twice as many entries as allowed, the half with the smaller counts is dropped. From then
 * on, every new client may have been dropped before, with at most the largest dropped count. So this
 * count is added to the client's count and to its error. This is the bound of the algorithm Space-Saving
 * (Metwally, Agrawal and El Abbadi, 2005), with less work for a new client.
 */
export class ClientSketch {
  readonly #size: number;
  readonly #entries = new Map<string, LimitedClient>();
  /** The largest count that was dropped. */
  #dropped = 0;

  /** @param entries what `top` of another sketch of the same size returned */
  constructor(entries: readonly LimitedClient[] = [], size = SKETCH_SIZE) {
    this.#size = size;
    for (const entry of entries) this.#entries.set(keyOf(entry), entry);
    if (entries.length >= size) this.#dropped = Math.min(...entries.map(({ count }) => count));
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  add(client: LimitedClient): void {
    const key = keyOf(client);
    const { count, error, lastAt } = this.#entries.get(key) ?? {
      count: this.#dropped,
      error: this.#dropped,
      lastAt: 0,
    };
    this.#entries.set(key, {
      ...client,
      count: count + client.count,
      error: error + client.error,
      lastAt: Math.max(lastAt, client.lastAt),
    });
    if (this.#entries.size >= 2 * this.#size) this.#shrink();
  }

  /** Returns the clients, the most limited first. */
  top(count = this.#size): LimitedClient[] {
    return [...this.#entries.values()]
      .sort((one, other) => other.count - one.count)
      .slice(0, Math.min(count, this.#size));
  }

  /** Returns the clients, and removes them from the sketch. */
  take(): LimitedClient[] {
    const clients = this.top();
    this.#entries.clear();
    this.#dropped = 0;
    return clients;
  }

  #shrink(): void {
    const sorted = [...this.#entries].sort(([, one], [, other]) => other.count - one.count);
    this.#dropped = Math.max(this.#dropped, sorted[this.#size]?.[1].count ?? 0);
    for (const [key] of sorted.slice(this.#size)) this.#entries.delete(key);
  }
}

/** A rule may change between shadow mode and enforced. Operators see the two apart. */
function keyOf({ rule, client, shadow }: LimitedClient): string {
  return `${rule}:${client}:${shadow}`;
}

// The clients of a row of the statistics: one line of JSON for each, the most limited first.

type StoredClient = [
  rule: string,
  client: string,
  count: number,
  error: number,
  lastAt: number,
  shadow: 0 | 1,
];

const SEPARATOR = ",\n";

/** The length of a line with the longest name of a rule, an identity and large numbers. */
const MAX_LINE_LENGTH = 200;

export function storeClients(clients: readonly LimitedClient[]): string {
  return clients
    .map(({ rule, client, count, error, lastAt, shadow }) => {
      const stored: StoredClient = [rule, client, count, error, lastAt, shadow ? 1 : 0];
      return JSON.stringify(stored);
    })
    .join(SEPARATOR);
}

export function readClients(stored: string): LimitedClient[] {
  return parse(stored).map(toClient);
}

/** Adds up the clients of several rows. */
export class ClientSums {
  readonly #limit: number;
  readonly #sums = new Map<string, StoredClient>();

  /** @param limit only this number of clients of each row are added, the most limited ones */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** The number of characters of a row that are needed at most; with shorter names, fewer. */
  get length(): number {
    return this.#limit * MAX_LINE_LENGTH;
  }

  /** @param stored the first {@link length} characters of a row */
  add(stored: string, rule: string | undefined): void {
    for (const client of parse(stored, this.#limit)) {
      if (rule !== undefined && client[0] !== rule) continue;
      const key = `${client[0]}:${client[1]}:${client[5]}`;
      const sum = this.#sums.get(key);
      if (!sum) {
        this.#sums.set(key, client);
        continue;
      }
      sum[2] += client[2];
      sum[3] += client[3];
      sum[4] = Math.max(sum[4], client[4]);
    }
  }

  /** Returns the clients with the greatest counts, the greatest first. */
  top(count: number): LimitedClient[] {
    const sorted = [...this.#sums.values()].sort((one, other) => other[2] - one[2]);
    return sorted.slice(0, count).map(toClient);
  }
}

function parse(stored: string, limit = Number.POSITIVE_INFINITY): StoredClient[] {
  let end = 0;
  for (let i = 0; i < limit; i++) {
    const next = stored.indexOf(SEPARATOR, end + 1);
    if (next < 0) return JSON.parse(`[${stored}]`) as StoredClient[];
    end = next;
  }
  return JSON.parse(`[${stored.slice(0, end)}]`) as StoredClient[];
}

function toClient([rule, client, count, error, lastAt, shadow]: StoredClient): LimitedClient {
  return { rule, client, count, error, lastAt, shadow: shadow === 1 };
}
