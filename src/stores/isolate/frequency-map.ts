/** How often something was asked for of late. */
export interface Frequency {
  /** Requests, each weighing less the longer it is past; see {@link recentUsesAt}. */
  recentUses: number;
  /** When that was, in milliseconds: the last request. */
  lastUsedAt: number;
}

/** After this long, in milliseconds, a request weighs 1/e of what it did. */
export const DECAY_MS = 10_000;

/** Entries looked at for one that may be evicted. */
const EVICTION_SCAN = 8;

/** Of newcomers that find only entries hotter than themselves, one in so many gets in. */
const ADMIT_ONE_IN = 8;

/** The recentUses of something by now: about the requests of the last {@link DECAY_MS}. */
export function recentUsesAt({ recentUses, lastUsedAt }: Frequency, now: number): number {
  const past = Math.max(0, now - lastUsedAt);
  return past === 0 ? recentUses : recentUses * Math.exp(-past / DECAY_MS);
}

/**
 * A map of at most `max` entries that keeps what is asked for often.
 *
 * In order of use, so the least recent come first. But recency is cheap to come by: whoever sends a
 * new key with each request could flush a map that evicts by it alone. So a newcomer takes the place
 * of an entry that has cooled below its own single request, and those that have not are passed over.
 * To drive out a client one has to send more than it does, for each of the places. Where all are
 * hotter, a newcomer is let in now and then, in place of the coldest, so that a client that goes on asking makes it.
 */
export class FrequencyMap<Value extends Frequency> {
  readonly #entries = new Map<string, Value>();
  readonly #max: number;
  readonly #onEvict: (value: Value, now: number) => void;
  #refused = 0;
  /** The key at the end of the order, if it is known: a busy one is used again and again. */
  #last: string | undefined;

  constructor(max: number, onEvict: (value: Value, now: number) => void = () => {}) {
    this.#max = max;
    this.#onEvict = onEvict;
  }

  get size(): number {
    return this.#entries.size;
  }

  peek(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  /** Finds an entry and notes that it is in use. */
  use(key: string, now: number): Value | undefined {
    const value = this.#entries.get(key);
    if (!value) return undefined;
    value.recentUses = recentUsesAt(value, now) + 1;
    value.lastUsedAt = now;
    if (key !== this.#last) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
      this.#last = key;
    }
    return value;
  }

  /** Puts in what is not there. @returns whether there was a place */
  add(key: string, value: Value): boolean {
    if (this.#entries.size >= this.#max && !this.#makePlace(value)) return false;
    this.#entries.set(key, value);
    this.#last = key;
    return true;
  }

  delete(key: string): void {
    this.#last = undefined;
    this.#entries.delete(key);
  }

  /** Empties the map. @returns what was in it */
  clear(): Value[] {
    const values = [...this.#entries.values()];
    this.#last = undefined;
    this.#entries.clear();
    return values;
  }

  /** The entry that was used least recently, but for those that an eviction has passed over. */
  oldest(): readonly [string, Value] | undefined {
    return this.#entries.entries().next().value;
  }

  #makePlace(newcomer: Value): boolean {
    const now = newcomer.lastUsedAt;
    this.#last = undefined;
    let rarest: { key: string; value: Value; recentUses: number } | undefined;
    let left = Math.min(EVICTION_SCAN, this.#entries.size);
    for (const [key, value] of this.#entries) {
      if (left-- === 0) break;
      const recentUses = recentUsesAt(value, now);
      if (!rarest || recentUses < rarest.recentUses) rarest = { key, value, recentUses };
      if (recentUses < newcomer.recentUses) break;
      // Passed over: to the end, where the next newcomer does not look again.
      this.#entries.delete(key);
      this.#entries.set(key, value);
    }
    if (!rarest) return false;
    if (rarest.recentUses >= newcomer.recentUses && ++this.#refused % ADMIT_ONE_IN !== 0)
      return false;
    this.#entries.delete(rarest.key);
    this.#onEvict(rarest.value, now);
    return true;
  }
}
