import type { Demand, UnusedQuota } from "../engine/counter.ts";
import { type Answer, type Group, mayBeCarriedOut, type Store } from "../stores/store.ts";

/**
 * What is known about the slots of a group: the store has taken them, has not taken them, or may have taken them
 * although its answer was lost.
 */
type Outcome = "taken" | "none" | "perhaps";

/** The slots of one group of counters. */
interface HeldGroup {
  readonly store: Store;
  readonly counters: readonly Demand[];
  /** Resolves when the store cannot take these slots any more. Never rejects. */
  readonly outcome: Promise<Outcome>;
}

/** The maximum delay of a timer in Node and in browsers, in milliseconds. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface SlotOptions {
  /**
   * The time in milliseconds, from the request for a slot, after which a failed call takes no slot any more. At least a
   * third of it passes after the failure.
   */
  readonly lateMs: number;
  /** Returns the Worker's time; undefined if the store's clock determines the windows. */
  readonly now: () => number | undefined;
  /** Returns this isolate's time, in milliseconds since the Unix epoch. */
  readonly time: () => number;
  /** Keeps the Worker alive until a task has ended. */
  readonly background: (task: Promise<unknown>) => void;
  /** Gets the slots whose return has failed. They may never have been taken. */
  readonly onLost: (unused: readonly UnusedQuota[], isTaken: boolean) => void;
  /** Gets the slots that the store has got back. */
  readonly onReturned: (slots: readonly UnusedQuota[]) => void;
}

/** The slots that one request has taken, or may still take. */
export class HeldSlots {
  readonly #options: SlotOptions;
  readonly #groups = new Set<HeldGroup>();
  #isKept = false;
  #isReleased = false;
  #renewal: ReturnType<typeof setInterval> | undefined;

  constructor(options: SlotOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#groups.size === 0;
  }

  /** Adds the slots of a group that a store decides. */
  add(store: Store, group: Group, answered: Promise<Answer>): void {
    const counters = group.filter(({ slot = 0 }) => slot > 0);
    if (counters.length === 0) return;
    const takenAt = this.#options.time();
    const perhaps = async (): Promise<Outcome> => {
      const { lateMs, time } = this.#options;
      const restMs = Math.max(lateMs / 3, Math.min(lateMs, takenAt + lateMs - time()));
      await new Promise((resolve) => setTimeout(resolve, restMs));
      return "perhaps";
    };
    const outcome = answered.then(
      ({ admitted, mayHold }) => (admitted ? "taken" : mayHold ? perhaps() : "none"),
      (error) => (mayBeCarriedOut(error) ? perhaps() : "none"),
    );
    const held = { store, counters, outcome };
    if (this.#isReleased) {
      this.#release(held);
      return;
    }
    this.#groups.add(held);
    if (this.#isKept) this.#startRenewals();
    outcome.then((known) => known === "none" && this.#groups.delete(held));
  }

  /** Begins to renew the slots before they expire, until they are released. */
  keep(): void {
    this.#isKept = true;
    if (this.#groups.size > 0) this.#startRenewals();
  }

  #startRenewals(): void {
    const { now, background } = this.#options;
    clearInterval(this.#renewal as ReturnType<typeof setInterval>);
    const lengths = [...this.#groups].flatMap(({ counters }) =>
      counters.map((each) => each.windowMs),
    );
    this.#renewal = setInterval(
      () => {
        for (const { store, counters } of this.#groups) {
          const renewed = store.adjust(
            counters.map((counter) => ({ ...counter, cost: 0 })),
            now(),
          );
          // After a failure, the next renewal may still be in time.
          background(renewed.catch(() => {}));
        }
      },
      Math.min(MAX_TIMER_MS, Math.min(...lengths) / 2),
    );
  }

  /** Gives the slots back, once. */
  release(): void {
    this.#isReleased = true;
    clearInterval(this.#renewal as ReturnType<typeof setInterval>);
    for (const each of this.#groups) this.#release(each);
    this.#groups.clear();
  }

  #release({ store, counters, outcome }: HeldGroup): void {
    const { now, background, onLost, onReturned } = this.#options;
    const release = async () => {
      const known = await outcome;
      if (known === "none") return;
      const slots = counters.map((counter) => ({ counter, quota: 1, window: 0 }));
      await store.adjust([], now(), slots).then(
        () => onReturned(slots),
        () => onLost(slots, known === "taken"),
      );
    };
    background(release());
  }
}
