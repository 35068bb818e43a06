import { MINUTE_MS } from "./sums.ts";

/**
 * The denials of a client in one minute, by one policy of a rule. It has no address, no path and no key: the client is
 * an identity, which is a hash.
 */
export interface Denials {
  readonly rule: string;
  /** The first policy that was violated. */
  readonly policy: string;
  readonly client: string;
  /**
   * `enforce`: the client got 429. `local`: so did the client, but this isolate counted alone, because the store had
   * failed. `shadow`: the rule is in shadow mode, so the request passed. `ahead`: the request had passed before the
   * store denied it (`async`).
   */
  readonly mode: "enforce" | "local" | "shadow" | "ahead";
  /** The number of denied requests. */
  readonly count: number;
  /** The times of the first and the last denial, in milliseconds since the Unix epoch. */
  readonly firstAt: number;
  readonly lastAt: number;
  /** The time after the last denial when the request may pass, in milliseconds; missing if it can never pass. */
  readonly retryAfterMs?: number | undefined;
  /** The data centre that received the last denied request; missing for a call of a program. */
  readonly colo?: string | undefined;
}

/** The minute of denials, since the Unix epoch. */
export function minuteOf({ lastAt }: Denials): number {
  return Math.floor(lastAt / MINUTE_MS);
}

/**
 * Denials of clients by the minute, with a bounded number of entries. With twice as many entries as allowed, those with
 * the smaller numbers are dropped and, of equal numbers, the older ones. The statistics have all totals anyway.
 */
export class DenialList {
  readonly #size: number;
  readonly #entries = new Map<string, Denials>();

  /** @param size the maximum number of entries that the list returns */
  constructor(size: number, entries: readonly Denials[] = []) {
    this.#size = size;
    for (const entry of entries) this.add(entry);
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  add(added: Denials): void {
    const { rule, policy, client, mode } = added;
    const key = `${minuteOf(added)}\n${client}\n${mode}\n${rule}\n${policy}`;
    const known = this.#entries.get(key);
    const newer = known && known.lastAt > added.lastAt ? known : added;
    // Stored entries also have an id, which stays.
    this.#entries.set(key, {
      ...known,
      ...newer,
      count: added.count + (known?.count ?? 0),
      firstAt: Math.min(added.firstAt, known?.firstAt ?? added.firstAt),
    });
    if (this.#entries.size >= 2 * this.#size) this.#shrink();
  }

  /** Returns the entries, the oldest first, and removes them from the list. */
  take(): Denials[] {
    this.#shrink();
    const entries = [...this.#entries.values()].sort((one, other) => one.lastAt - other.lastAt);
    this.#entries.clear();
    return entries;
  }

  #shrink(): void {
    if (this.#entries.size <= this.#size) return;
    const sorted = [...this.#entries].sort(
      ([, one], [, other]) => other.count - one.count || other.lastAt - one.lastAt,
    );
    for (const [key] of sorted.slice(this.#size)) this.#entries.delete(key);
  }
}
