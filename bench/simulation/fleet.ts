import { inTime } from "../../src/stores/deadline.ts";
import { withDenialCache } from "../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../src/stores/isolate/leases.ts";
import type { Store } from "../../src/stores/store.ts";
import type { Random } from "./random.ts";
import { type Actor, type VirtualTime, WORLD } from "./virtual-time.ts";

/** The default of Weir's `timeoutMs`. */
const TIMEOUT_MS = 1000;

/** One of many isolates that run Weir. Its leases and its denial cache are lost when it ends. */
export class Isolate implements Actor {
  readonly skewMs: number;
  isAlive = true;
  /** The true time at which the isolate ended; undefined while it runs. */
  diedAt: number | undefined;
  /** The number of requests that wait for a decision. */
  waiting = 0;
  /** The store with the wrappers of src/stores/create-store.ts, without the breaker. */
  readonly store: Store;

  constructor(skewMs: number, connect: (isolate: Isolate) => Store, timeoutMs = TIMEOUT_MS) {
    this.skewMs = skewMs;
    const { decide, adjust, reset } = connect(this);
    const limited: Store = {
      decide: (...args) => decide(...args).map((answer) => inTime(() => answer, timeoutMs)),
      adjust: (...args) => inTime(() => adjust(...args), timeoutMs),
      reset,
    };
    this.store = withLeases(withDenialCache(limited), { timeoutMs, background: () => {} });
  }

  die(at: number): void {
    this.isAlive = false;
    this.diedAt = at;
  }
}

/**
 * Determines which isolate receives a client's request. Each client has one isolate as its home,
 * and the home can change.
 */
export interface Routing {
  /** How many times a minute a client's home moves to another isolate, on average. */
  readonly movesPerMinute: number;
  /** The share of requests that go to a random isolate instead of the client's home. */
  readonly strays: number;
}

export interface FleetOptions {
  readonly isolates: number;
  readonly routing: Routing;
  /**
   * The share of isolates that end in a minute. A new isolate with empty memory replaces each of
   * them.
   */
  readonly deathsPerMinute: number;
  /** The maximum error of an isolate's clock, in either direction, in milliseconds. */
  readonly skewMs: number;
  /** The deadline of decisions, in milliseconds. @default 1000 */
  readonly timeoutMs?: number;
}

/**
 * The maximum number of clients whose homes are kept. Above this number, the oldest client loses its home, and its next
 * request goes to a new one.
 */
const MAX_HOMES = 500_000;

const MINUTE_MS = 60_000;

/** All isolates, and the routing of requests to them. */
export class Fleet {
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #options: FleetOptions;
  readonly #connect: (isolate: Isolate) => Store;
  readonly #isolates: Isolate[];
  /** For each client: the index of its home isolate, and the time of its last request. */
  readonly #homes = new Map<number | string, { place: number; seenAt: number }>();
  /** The number of requests whose isolate ended while they waited for a decision. */
  lostWithIsolate = 0;

  constructor(
    time: VirtualTime,
    random: Random,
    options: FleetOptions,
    connect: (isolate: Isolate) => Store,
  ) {
    this.#time = time;
    this.#random = random;
    this.#options = options;
    this.#connect = connect;
    this.#isolates = Array.from({ length: options.isolates }, () => this.#start());
  }

  /** Selects the isolate for a request of this client. */
  isolateFor(client: number | string): Isolate {
    const { isolates, routing } = this.#options;
    const place = this.#random.chance(routing.strays)
      ? this.#random.below(isolates)
      : this.#homeOf(client);
    return this.#isolates[place] as Isolate;
  }

  /** Plans the times before `endsAt` at which isolates end. */
  planDeaths(endsAt: number): void {
    const { isolates, deathsPerMinute } = this.#options;
    if (deathsPerMinute === 0) return;
    const nextAt =
      this.#time.now + this.#random.exponential(MINUTE_MS / (isolates * deathsPerMinute));
    if (nextAt >= endsAt) return;
    this.#time.at(nextAt, WORLD, () => {
      const place = this.#random.below(isolates);
      const isolate = this.#isolates[place] as Isolate;
      isolate.die(nextAt);
      this.lostWithIsolate += isolate.waiting;
      this.#isolates[place] = this.#start();
      this.planDeaths(endsAt);
    });
  }

  #start(): Isolate {
    const skewMs = (2 * this.#random.uniform() - 1) * this.#options.skewMs;
    return new Isolate(skewMs, this.#connect, this.#options.timeoutMs);
  }

  /**
   * Returns the index of a client's home isolate. A client may move at any time, but its new home
   * is chosen when it sends its next request.
   */
  #homeOf(client: number | string): number {
    const { isolates, routing } = this.#options;
    const { now } = this.#time;
    const home = this.#homes.get(client);
    const minutes = home ? (now - home.seenAt) / MINUTE_MS : Number.POSITIVE_INFINITY;
    const hasMoved = !home || this.#random.chance(1 - Math.exp(-routing.movesPerMinute * minutes));
    const place = home && !hasMoved ? home.place : this.#random.below(isolates);
    this.#homes.set(client, { place, seenAt: now });
    if (this.#homes.size > MAX_HOMES) {
      for (const first of this.#homes.keys()) {
        this.#homes.delete(first);
        break;
      }
    }
    return place;
  }
}
