import type { Demand, UnusedQuota } from "../engine/counter.ts";
import type { Answer, Group, Store } from "../stores/store.ts";

/** The slots of one group of counters. */
interface HeldGroup {
  readonly store: Store;
  readonly counters: readonly Demand[];
  /** Resolves when the store cannot take these slots any more. Never rejects. */
  readonly taken: Promise<unknown>;
}

/**
 * The slots that one request has taken, or may still take: a store may charge a group although its answer comes too
 * late. Returning a slot that was never taken changes nothing.
 */
export class HeldSlots {
  readonly #lateMs: number;
  readonly #now: () => number | undefined;
  readonly #background: (task: Promise<unknown>) => void;
  readonly #onLost: (unused: readonly UnusedQuota[]) => void;
  #groups: HeldGroup[] = [];
  #isReleased = false;
  #renewal: ReturnType<typeof setInterval> | undefined;

  /**
   * @param lateMs the time in milliseconds after which a failed call takes no slot any more
   * @param now returns the Worker's time; undefined if the store's clock determines the windows
   * @param background keeps the Worker alive until a task has ended
   * @param onLost gets the slots whose return has failed
   */
  constructor(
    lateMs: number,
    now: () => number | undefined,
    background: (task: Promise<unknown>) => void,
    onLost: (unused: readonly UnusedQuota[]) => void,
  ) {
    this.#lateMs = lateMs;
    this.#now = now;
    this.#background = background;
    this.#onLost = onLost;
  }

  get isEmpty(): boolean {
    return this.#groups.length === 0;
  }

  /** Adds the slots of a group that a store decides. */
  add(store: Store, group: Group, answered: Promise<Answer>): void {
    const counters = group.filter(({ slot = 0 }) => slot > 0);
    if (counters.length === 0) return;
    const taken = answered.then(
      () => {},
      () => new Promise((resolve) => setTimeout(resolve, this.#lateMs)),
    );
    const held = { store, counters, taken };
    if (this.#isReleased) this.#release(held);
    else this.#groups.push(held);
  }

  /** Begins to renew the slots before they expire, until they are released. */
  keep(): void {
    const counters = this.#groups.flatMap((each) => each.counters);
    const periodMs = Math.min(...counters.map(({ windowMs }) => windowMs)) / 2;
    this.#renewal = setInterval(() => {
      for (const { store, counters } of this.#groups) {
        const renewed = store.adjust(
          counters.map((counter) => ({ ...counter, cost: 0 })),
          this.#now(),
        );
        // After a failure, the next renewal may still be in time.
        this.#background(renewed.catch(() => {}));
      }
    }, periodMs);
  }

  /** Gives the slots back, once. */
  release(): void {
    this.#isReleased = true;
    clearInterval(this.#renewal as ReturnType<typeof setInterval>);
    const groups = this.#groups;
    this.#groups = [];
    for (const each of groups) this.#release(each);
  }

  #release({ store, counters, taken }: HeldGroup): void {
    const unused = counters.map((counter) => ({ counter, quota: 1, window: 0 }));
    const released = taken.then(() => store.adjust([], this.#now(), unused));
    this.#background(released.catch(() => this.#onLost(unused)));
  }
}
