/**
 * A cache of at most `max` results, by the texts from which they were computed. A full cache drops the less recently
 * used half of its results. A cache miss takes hardly any time.
 */
export class LruCache<Result> {
  readonly #half: number;
  #young = new Map<string, Result>();
  #old = new Map<string, Result>();

  constructor(max: number) {
    this.#half = max / 2;
  }

  get size(): number {
    return this.#young.size + this.#old.size;
  }

  get(text: string): Result | undefined {
    const young = this.#young.get(text);
    if (young !== undefined) return young;
    const old = this.#old.get(text);
    if (old !== undefined) this.set(text, old);
    return old;
  }

  set(text: string, result: Result): void {
    if (this.#young.size >= this.#half) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(text, result);
  }
}
