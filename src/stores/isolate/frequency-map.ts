/** How often an entry was used recently. */
export interface Frequency {
  /** The number of uses until `lastUsedAt`, each weighted by its age: see {@link recentUsesAt}. */
  recentUses: number;
  /** When the entry was used last, in milliseconds. */
  lastUsedAt: number;
}

/** The age in milliseconds at which a use has 1/e of the weight of a new use. */
export const DECAY_MS = 10_000;

/** The maximum number of entries that an eviction examines. */
const EVICTION_SCAN = 8;

/** If all examined entries are busier than the new entry, only one in this many new entries is added. */
const ADMIT_ONE_IN = 8;

/**
 * Returns the number of recent uses at a time, each weighted by its age: about the number of uses in the last
 * {@link DECAY_MS}.
 */
export function recentUsesAt({ recentUses, lastUsedAt }: Frequency, now: number): number {
  const ageMs = Math.max(0, now - lastUsedAt);
  return ageMs === 0 ? recentUses : recentUses * Math.exp(-ageMs / DECAY_MS);
}

/**
 * A map of at most `max` entries that keeps the most frequently used entries.
 *
 * Entries are in order of use, with the least recently used entry first. If the order alone decided evictions (LRU),
 * an attacker who always uses new keys could evict all entries. So an eviction skips busier entries: a new entry
 * replaces only an entry that has fewer recent uses than the new one. To evict a client, an attacker needs as many
 * keys as the map has entries, and each key must be busier than the client. If all examined entries are busier, one
 * new entry in {@link ADMIT_ONE_IN} replaces the least used examined entry. So a client that keeps sending gets an
 * entry in the end.
 */
export class FrequencyMap<Value extends Frequency> {
  readonly #entries = new Map<string, Value>();
  readonly #max: number;
  readonly #onEvict: (value: Value, now: number) => void;
  #rejectedEntries = 0;
  /** The last key in the order, which need not be moved; undefined if unknown. */
  #lastKey: string | undefined;

  constructor(max: number, onEvict: (value: Value, now: number) => void = () => {}) {
    this.#max = max;
    this.#onEvict = onEvict;
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Returns an entry without counting a use. */
  peek(key: string): Value | undefined {
    return this.#entries.get(key);
  }

  /** Returns an entry and counts a use. */
  use(key: string, now: number): Value | undefined {
    const value = this.#entries.get(key);
    if (!value) return undefined;
    value.recentUses = recentUsesAt(value, now) + 1;
    value.lastUsedAt = now;
    if (key !== this.#lastKey) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
      this.#lastKey = key;
    }
    return value;
  }

  /**
   * Adds an entry with a new key.
   *
   * @returns whether the entry was added; false if the map is full of busier entries
   */
  add(key: string, value: Value): boolean {
    if (this.#entries.size >= this.#max && !this.#evictFor(value)) return false;
    this.#entries.set(key, value);
    this.#lastKey = key;
    return true;
  }

  delete(key: string): void {
    this.#lastKey = undefined;
    this.#entries.delete(key);
  }

  /** Removes all entries. @returns the removed values */
  clear(): Value[] {
    const values = [...this.#entries.values()];
    this.#lastKey = undefined;
    this.#entries.clear();
    return values;
  }

  /** Returns the first entry: the least recently used one, unless an eviction has moved entries. */
  oldest(): readonly [string, Value] | undefined {
    return this.#entries.entries().next().value;
  }

  #evictFor(newcomer: Value): boolean {
    const now = newcomer.lastUsedAt;
    this.#lastKey = undefined;
    let rarest: { key: string; value: Value; recentUses: number } | undefined;
    let left = Math.min(EVICTION_SCAN, this.#entries.size);
    for (const [key, value] of this.#entries) {
      if (left-- === 0) break;
      const recentUses = recentUsesAt(value, now);
      if (!rarest || recentUses < rarest.recentUses) rarest = { key, value, recentUses };
      if (recentUses < newcomer.recentUses) break;
      // The entry is moved to the end, so that the next eviction examines other entries.
      this.#entries.delete(key);
      this.#entries.set(key, value);
    }
    if (!rarest) return false;
    const isBusier = rarest.recentUses >= newcomer.recentUses;
    if (isBusier && ++this.#rejectedEntries % ADMIT_ONE_IN !== 0) return false;
    this.#entries.delete(rarest.key);
    this.#onEvict(rarest.value, now);
    return true;
  }
}
