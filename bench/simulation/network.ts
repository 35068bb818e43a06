import type { Counter, GroupVerdict, UnusedQuota } from "../../src/engine/counter.ts";
import type { Store, Verdict } from "../../src/stores/store.ts";
import { WORLD } from "./actor.ts";
import type { Isolate } from "./isolate.ts";
import type { Ledger } from "./ledger.ts";
import type { Random } from "./random.ts";
import { type Request, requestOf } from "./request.ts";
import type { VirtualTime } from "./virtual-time.ts";

export interface NetworkOptions {
  /** The mean time of a call to the store and back, in milliseconds. */
  readonly roundTripMs: number;
  /** The share of calls whose request or answer is lost. */
  readonly lossShare: number;
}

/**
 * The share of the one-way time that is constant. The rest is random, so a call can arrive before
 * an earlier call.
 */
const CONSTANT_SHARE = 0.7;

/** The network between the isolates and the store. */
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

  /** Returns a store whose calls from this isolate go over the simulated network. */
  connect(isolate: Isolate): Store {
    const unsupported = () => Promise.reject(new Error("The simulation only supports decide."));
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
    this.#ledger.recordCall(unused);
    const isLost = this.#random.chance(this.#options.lossShare);
    // In half of the lost calls, only the answer is lost, so the store has charged the quota.
    const reachesStore = !isLost || this.#random.chance(0.5);
    const arrivesAt = this.#time.now + this.#oneWayMs();
    return new Promise((resolve) => {
      if (!reachesStore) return;
      this.#time.at(arrivesAt, WORLD, async () => {
        const verdict = await this.#store.decide(groups, undefined, unused);
        this.#ledger.recordCharges(isolate, groups, verdict, unused);
        if (isLost) return;
        this.#time.at(arrivesAt + this.#oneWayMs(), isolate, () => {
          for (const [request, { admitted }] of requestsWithAnswers(groups, verdict)) {
            request.answer = { decidedAt: verdict.now, admitted };
          }
          resolve(verdict);
        });
      });
    });
  }

  #oneWayMs(): number {
    const mean = this.#options.roundTripMs / 2;
    return CONSTANT_SHARE * mean + this.#random.exponential((1 - CONSTANT_SHARE) * mean);
  }
}

/** Yields the request of each group, and the store's answer for that group. */
function* requestsWithAnswers(
  groups: readonly (readonly Counter[])[],
  verdict: Verdict,
): Generator<[Request, GroupVerdict]> {
  for (const [index, group] of groups.entries()) {
    yield [requestOf(group[0] as Counter), verdict.groups[index] as GroupVerdict];
  }
}
