import type { Adjustment, Tally, UnusedQuota } from "../../src/engine/counter.ts";
import type { Answer, Group, Store } from "../../src/stores/store.ts";
import type { Isolate } from "./fleet.ts";
import type { Random } from "./random.ts";
import type { VirtualTime } from "./virtual-time.ts";
import { WORLD } from "./virtual-time.ts";

export interface NetworkOptions {
  /** The mean time of a call to the store and back, in milliseconds. */
  readonly roundTripMs: number;
  /** The share of calls whose request or answer is lost. */
  readonly lossShare: number;
}

type Groups = readonly Group[];

/** Records the events in the network. */
export interface NetworkRecorder {
  /** An isolate has sent a call for a decision. */
  recordCall(unused: readonly UnusedQuota[]): void;
  /** The store has decided. */
  recordCharges(
    isolate: Isolate,
    groups: Groups,
    answers: readonly Answer[],
    unused: readonly UnusedQuota[],
  ): void;
  /** The store's answer has arrived at the isolate. */
  recordAnswer?(groups: Groups, answers: readonly Answer[]): void;
  /** The store has adjusted counters. */
  recordAdjustment?(
    counters: readonly Adjustment[],
    tallies: readonly Tally[],
    unused: readonly UnusedQuota[],
  ): void;
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
          const answers = await Promise.all(this.#store.decide(groups, undefined, unused));
          recorder.recordCharges(isolate, groups, answers, unused);
          return answers;
        };
        const call = this.#call(isolate, decide, (answers) =>
          recorder.recordAnswer?.(groups, answers),
        );
        return groups.map((_, index) => call.then((answers) => answers[index] as Answer));
      },
      adjust: (counters, _now, unused = []) => {
        const adjust = async () => {
          const tallies = await this.#store.adjust(counters, undefined, unused);
          recorder.recordAdjustment?.(counters, tallies, unused);
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
  #call<Result>(
    isolate: Isolate,
    callStore: () => Promise<Result>,
    onAnswer: (result: Result) => void,
  ): Promise<Result> {
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
