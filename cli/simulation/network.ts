import type { Counter, Tally, UnusedQuota } from "../../src/engine/counter.ts";
import type { Store, Verdict } from "../../src/stores/store.ts";
import { WORLD } from "./actor.ts";
import type { Isolate } from "./isolate.ts";
import type { Random } from "./random.ts";
import type { VirtualTime } from "./virtual-time.ts";

export interface NetworkOptions {
  /** The mean time of a call to the store and back, in milliseconds. */
  readonly roundTripMs: number;
  /** The share of calls whose request or answer is lost. */
  readonly lossShare: number;
}

type Groups = readonly (readonly Counter[])[];

/** Records what happens in the network. */
export interface NetworkRecorder {
  /** An isolate has sent a call for a decision. */
  recordCall(unused: readonly UnusedQuota[]): void;
  /** The store has decided. */
  recordCharges(
    isolate: Isolate,
    groups: Groups,
    verdict: Verdict,
    unused: readonly UnusedQuota[],
  ): void;
  /** The store's answer has arrived at the isolate. */
  recordAnswer?(groups: Groups, verdict: Verdict): void;
  /** The store has adjusted counters. */
  recordAdjustment?(counters: readonly Counter[], tallies: readonly Tally[]): void;
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
  readonly #recorder: NetworkRecorder;
  readonly #random: Random;
  readonly #options: NetworkOptions;

  constructor(
    time: VirtualTime,
    store: Store,
    recorder: NetworkRecorder,
    random: Random,
    options: NetworkOptions,
  ) {
    this.#time = time;
    this.#store = store;
    this.#recorder = recorder;
    this.#random = random;
    this.#options = options;
  }

  /** Returns a store whose calls from this isolate go over the simulated network. */
  connect(isolate: Isolate): Store {
    const recorder = this.#recorder;
    return {
      decide: (groups, _now, unused = []) => {
        recorder.recordCall(unused);
        const decide = async () => {
          const verdict = await this.#store.decide(groups, undefined, unused);
          recorder.recordCharges(isolate, groups, verdict, unused);
          return verdict;
        };
        return this.#call(isolate, decide, (verdict) => recorder.recordAnswer?.(groups, verdict));
      },
      adjust: (counters) => {
        const adjust = async () => {
          const tallies = await this.#store.adjust(counters);
          recorder.recordAdjustment?.(counters, tallies);
          return tallies;
        };
        return this.#call(isolate, adjust, () => {});
      },
      reset: () => Promise.reject(new Error("The simulation does not reset counters.")),
    };
  }

  /**
   * Calls the store over the network. The promise stays pending if the call or its answer is lost.
   *
   * @param onAnswer called when the answer arrives
   */
  #call<Answer>(
    isolate: Isolate,
    callStore: () => Promise<Answer>,
    onAnswer: (answer: Answer) => void,
  ): Promise<Answer> {
    const isLost = this.#random.chance(this.#options.lossShare);
    // In half of the lost calls, only the answer is lost, so the store has charged the quota.
    const reachesStore = !isLost || this.#random.chance(0.5);
    const arrivesAt = this.#time.now + this.#oneWayMs();
    return new Promise((resolve) => {
      if (!reachesStore) return;
      this.#time.at(arrivesAt, WORLD, async () => {
        const answer = await callStore();
        if (isLost) return;
        this.#time.at(arrivesAt + this.#oneWayMs(), isolate, () => {
          onAnswer(answer);
          resolve(answer);
        });
      });
    });
  }

  #oneWayMs(): number {
    const mean = this.#options.roundTripMs / 2;
    return CONSTANT_SHARE * mean + this.#random.exponential((1 - CONSTANT_SHARE) * mean);
  }
}
