interface Expiry {
  readonly key: string;
  readonly expiresAt: number;
}

/** Keys ordered by expiry, in a binary heap with the earliest expiry on top. */
export class ExpiryQueue {
  readonly #heap: Expiry[] = [];

  get size(): number {
    return this.#heap.length;
  }

  add(key: string, expiresAt: number): void {
    const heap = this.#heap;
    let index = heap.length;
    const expiry = { key, expiresAt };
    heap.push(expiry);
    while (index > 0) {
      const parent = (index - 1) >> 1;
      const above = heap[parent] as Expiry;
      if (above.expiresAt <= expiresAt) break;
      heap[index] = above;
      index = parent;
    }
    heap[index] = expiry;
  }

  /** Removes and returns the key that expires first, unless it expires after `now`. */
  takeExpired(now: number): string | undefined {
    const heap = this.#heap;
    const [first] = heap;
    if (!first || first.expiresAt > now) return undefined;
    const last = heap.pop() as Expiry;
    if (heap.length === 0) return first.key;
    let index = 0;
    while (true) {
      let child = 2 * index + 1;
      if (child >= heap.length) break;
      if (
        child + 1 < heap.length &&
        (heap[child + 1] as Expiry).expiresAt < (heap[child] as Expiry).expiresAt
      ) {
        child += 1;
      }
      if ((heap[child] as Expiry).expiresAt >= last.expiresAt) break;
      heap[index] = heap[child] as Expiry;
      index = child;
    }
    heap[index] = last;
    return first.key;
  }

  clear(): void {
    this.#heap.length = 0;
  }
}
