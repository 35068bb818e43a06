import type { RememberedClient } from "./applied-client.ts";

/**
 * The clients of the recent past, by the values of their keys. When there are many, it forgets those that were
 * not looked up since half of them came.
 */
export class ClientCache {
  readonly #half: number;
  readonly #onForget: (client: RememberedClient) => void;
  #recent = new Map<string, RememberedClient>();
  #earlier = new Map<string, RememberedClient>();

  /**
   * @param max the maximum number of clients
   * @param onForget called with each client that is forgotten
   */
  constructor(max: number, onForget: (client: RememberedClient) => void) {
    this.#half = max / 2;
    this.#onForget = onForget;
  }

  get(key: string): RememberedClient | undefined {
    const recent = this.#recent.get(key);
    if (recent) return recent;
    const earlier = this.#earlier.get(key);
    if (!earlier) return undefined;
    this.#earlier.delete(key);
    this.set(key, earlier);
    return earlier;
  }

  /** Adds a client that is not in the cache. */
  set(key: string, client: RememberedClient): void {
    if (this.#recent.size >= this.#half) {
      for (const forgotten of this.#earlier.values()) this.#onForget(forgotten);
      this.#earlier = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(key, client);
  }
}
