import type { Counter, GroupVerdict, UnusedQuota } from "../../src/engine/counter.ts";
import type { Store, Verdict } from "../../src/stores/store.ts";
import { WORLD } from "./actor.ts";
import type { Isolate } from "./isolate.ts";
import type { Ledger } from "./ledger.ts";
import type { Random } from "./random.ts";
import { type Request, requestOf } from "./request.ts";
import type { VirtualTime } from "./virtual-time.ts";

export interface NetworkOptions {
  readonly roundTripMs: number;
  readonly lossShare: number;
}

/** Of the time one way, as much is the same for all; the rest is chance, so calls overtake others. */
const STEADY = 0.7;

/** The way from isolates to the store and back. */
export class Network {
  readonly #time: VirtualTime;
  readonly #store: Store;
  readonly #ledger: Ledger;
  readonly #random: Random;
  readonly #options: NetworkOptions;

  constructor(
    time: VirtualTime,
    store: Store,
    ledger: Ledger,
    random: Random,
    options: NetworkOptions,
  ) {
    this.#time = time;
    this.#store = store;
    this.#ledger = ledger;
    this.#random = random;
    this.#options = options;
  }

  /** The store as an isolate sees it. */
  from(isolate: Isolate): Store {
    const unsupported = () => Promise.reject(new Error("not simulated"));
    return {
      decide: (groups, _now, unused = []) => this.#call(isolate, groups, unused),
      adjust: unsupported,
      reset: unsupported,
    };
  }

  #call(
    isolate: Isolate,
    groups: readonly (readonly Counter[])[],
    unused: readonly UnusedQuota[],
  ): Promise<Verdict> {
    this.#ledger.called(unused);
    const isLost = this.#random.chance(this.#options.lossShare);
    // Half of what gets lost has been done nevertheless.
    const isDone = !isLost || this.#random.chance(0.5);
    const arrivesAt = this.#time.now + this.#oneWayMs();
    return new Promise((resolve) => {
      if (!isDone) return;
      this.#time.at(arrivesAt, WORLD, async () => {
        const verdict = await this.#store.decide(groups, undefined, unused);
        this.#ledger.charged(isolate, groups, verdict, unused);
        if (isLost) return;
        this.#time.at(arrivesAt + this.#oneWayMs(), isolate, () => {
          for (const [request, { admitted }] of asked(groups, verdict)) {
            request.call = { decidedAt: verdict.now, admitted };
          }
          resolve(verdict);
        });
      });
    });
  }

  #oneWayMs(): number {
    const mean = this.#options.roundTripMs / 2;
    return STEADY * mean + this.#random.exponential((1 - STEADY) * mean);
  }
}

/** The request that each group is asked for, and what was answered. */
function* asked(
  groups: readonly (readonly Counter[])[],
  verdict: Verdict,
): Generator<[Request, GroupVerdict]> {
  for (const [index, group] of groups.entries()) {
    yield [requestOf(group[0] as Counter), verdict.groups[index] as GroupVerdict];
  }
}
