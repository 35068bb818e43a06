/** A binary heap: its first item comes before all others. */
export class Heap<Item> {
  readonly #items: Item[] = [];
  readonly #isBefore: (one: Item, other: Item) => boolean;

  constructor(isBefore: (one: Item, other: Item) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The first item; undefined if the heap is empty. */
  get first(): Item | undefined {
    return this.#items[0];
  }

  add(item: Item): void {
    const items = this.#items;
    let index = items.length;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#isBefore(item, items[parent] as Item)) break;
      items[index] = items[parent] as Item;
      index = parent;
    }
    items[index] = item;
  }

  /** Removes the first item. */
  removeFirst(): void {
    const items = this.#items;
    const last = items.pop();
    if (last === undefined || items.length === 0) return;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= items.length) break;
      const next = items[child + 1];
      if (next !== undefined && this.#isBefore(next, items[child] as Item)) child += 1;
      if (!this.#isBefore(items[child] as Item, last)) break;
      items[index] = items[child] as Item;
      index = child;
    }
    items[index] = last;
  }

  clear(): void {
    this.#items.length = 0;
  }
}

interface Expiry {
  readonly key: string;
  readonly expiresAt: number;
}

/** A queue of keys, in the order of their expiry. */
export class ExpiryQueue {
  readonly #heap = new Heap<Expiry>((one, other) => one.expiresAt < other.expiresAt);

  get size(): number {
    return this.#heap.size;
  }

  add(key: string, expiresAt: number): void {
    this.#heap.add({ key, expiresAt });
  }

  /** Removes and returns the key that expires first, unless it expires after `now`. */
  takeExpired(now: number): string | undefined {
    const { first } = this.#heap;
    if (!first || first.expiresAt > now) return undefined;
    this.#heap.removeFirst();
    return first.key;
  }

  clear(): void {
    this.#heap.clear();
  }
}
