/** A key, and when it expires. */
interface Expiry {
  readonly key: string;
  readonly expiresAt: number;
}

/** Keys by when they expire: a binary heap with the earliest on top. */
export class ExpiryQueue {
  readonly #heap: Expiry[] = [];

  get size(): number {
    return this.#heap.length;
  }

  add(key: string, expiresAt: number): void {
    const heap = this.#heap;
    let at = heap.length;
    const expiry = { key, expiresAt };
    heap.push(expiry);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = heap[parent] as Expiry;
      if (above.expiresAt <= expiresAt) break;
      heap[at] = above;
      at = parent;
    }
    heap[at] = expiry;
  }

  /** Takes out the key that expires first, if that is not after `now`. */
  takeExpired(now: number): string | undefined {
    const heap = this.#heap;
    const [first] = heap;
    if (!first || first.expiresAt > now) return undefined;
    const last = heap.pop() as Expiry;
    if (heap.length === 0) return first.key;
    let at = 0;
    while (true) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (
        child + 1 < heap.length &&
        (heap[child + 1] as Expiry).expiresAt < (heap[child] as Expiry).expiresAt
      ) {
        child += 1;
      }
      if ((heap[child] as Expiry).expiresAt >= last.expiresAt) break;
      heap[at] = heap[child] as Expiry;
      at = child;
    }
    heap[at] = last;
    return first.key;
  }

  clear(): void {
    this.#heap.length = 0;
  }
}
