import type { LimitedClient } from "./sums.ts";

/** The maximum number of clients of which this isolate counts the denials. */
export const MAX_LIMITED_CLIENTS = 64;

type Entry = { -readonly [Field in keyof LimitedClient]: LimitedClient[Field] };

/**
 * Counts how often clients were limited, for the clients limited most often.
 *
 * This is the algorithm Space-Saving (Metwally, Agrawal and El Abbadi, 2005). If there is no space for
 * a new client, it replaces the client with the smallest count, and takes over this count as its error.
 * So each client that has more than 1/64 of all denials has an entry, and no count is too low.
 */
export class LimitedClients {
  readonly #entries = new Map<string, Entry>();

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** @param shadow whether the rule was in shadow mode, so that the client was not denied */
  add(rule: string, client: string, shadow: boolean, now: number): void {
    // No rule name contains these separators.
    const key = rule + (shadow ? "~" : ":") + client;
    const entry = this.#entries.get(key);
    if (entry) {
      entry.count += 1;
      entry.lastAt = now;
      return;
    }
    const error = this.#entries.size < MAX_LIMITED_CLIENTS ? 0 : this.#removeSmallest();
    this.#entries.set(key, { rule, client, count: error + 1, error, lastAt: now, shadow });
  }

  /** Returns all entries, and begins to count anew. */
  take(): LimitedClient[] {
    const clients = [...this.#entries.values()];
    this.#entries.clear();
    return clients;
  }

  /** @returns the count of the removed client */
  #removeSmallest(): number {
    let smallest = "";
    let count = Number.POSITIVE_INFINITY;
    for (const [key, entry] of this.#entries) {
      if (entry.count >= count) continue;
      smallest = key;
      count = entry.count;
    }
    this.#entries.delete(smallest);
    return count;
  }
}
