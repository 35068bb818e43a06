import type { LimitedClient } from "../statistics/sums.ts";

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
