import type { LogRequest } from "../logs/log-request.ts";
import type { Random } from "../simulation/random.ts";

const SECOND_MS = 1000;
/** The maximum number of requests that are kept to spread them over one second. */
const MAX_KEPT = 100_000;

/** A request, and the time at which it arrives in the simulation. */
export interface Arrival {
  readonly request: LogRequest;
  /** Milliseconds since the Unix epoch, with fractions. */
  readonly at: number;
}

/**
 * Spreads requests over the second in which they arrived, because many logs state only whole seconds. Without
 * this, all requests of a second would arrive at once. Keeps the order of the requests.
 */
export class SecondSpread {
  readonly #random: Random;
  #kept: LogRequest[] = [];
  /** The offset, in milliseconds, of the last request of the second of `#kept` that was returned. */
  #offset = 0;
  #hasWholeSeconds = true;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Returns the requests that can arrive now. The requests of the last second are kept. */
  add(requests: readonly LogRequest[]): Arrival[] {
    const arrivals: Arrival[] = [];
    for (const request of requests) {
      if (this.#hasWholeSeconds && request.at % SECOND_MS !== 0) {
        arrivals.push(...this.flush());
        this.#hasWholeSeconds = false;
      }
      if (!this.#hasWholeSeconds) {
        arrivals.push({ request, at: request.at });
        continue;
      }
      const isNext = this.#kept.length > 0 && request.at !== this.#kept[0]?.at;
      if (isNext || this.#kept.length === MAX_KEPT) {
        const { offset, list } = this.#spread();
        for (const arrival of list) arrivals.push(arrival);
        this.#offset = isNext ? 0 : offset;
      }
      this.#kept.push(request);
    }
    return arrivals;
  }

  /** Returns the kept requests. */
  flush(): Arrival[] {
    const { list } = this.#spread();
    this.#offset = 0;
    return list;
  }

  #spread(): { readonly offset: number; readonly list: Arrival[] } {
    const rest = SECOND_MS - this.#offset;
    const offsets = this.#kept.map(() => this.#offset + this.#random.uniform() * rest);
    offsets.sort((a, b) => a - b);
    const list = this.#kept.map((request, index) => {
      return { request, at: request.at + (offsets[index] as number) };
    });
    this.#kept = [];
    return { offset: offsets.at(-1) ?? this.#offset, list };
  }
}
