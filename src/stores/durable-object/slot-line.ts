import type { Demand, ReadRow, Writes } from "../../engine/counter.ts";
import { openSlots, type SlotCounter, takeSlot } from "../../engine/slots.ts";

type SlotDemand = Demand & SlotCounter;

/** A call that waits for a slot. */
interface Waiter {
  readonly counter: SlotDemand;
  readonly claimMs: number;
  readonly end: (isTaken: boolean) => void;
}

/** The maximum number of calls to one object that wait for slots. That many take about 2 MB. */
export const MAX_WAITING = 1000;

/** The time between two looks for expired slots while calls wait, in milliseconds. */
const LOOK_MS = 1000;

/**
 * The calls to one object that wait for slots, in the order of arrival. A slot that gets free is taken for the first of
 * them at once, so that no later request can take it.
 */
export class SlotLine {
  readonly #read: (now: number) => ReadRow;
  readonly #write: (writes: Writes, now: number) => void;
  /** The waiting calls, by the keys of their counters and the ids of their slots. */
  readonly #waiters = new Map<string, Map<number, Waiter>>();
  #size = 0;
  #looks: ReturnType<typeof setInterval> | undefined;

  constructor(read: (now: number) => ReadRow, write: (writes: Writes, now: number) => void) {
    this.#read = read;
    this.#write = write;
  }

  /** @returns whether the slot was taken, for `claimMs`: see `Store.awaitSlot` */
  join(counter: SlotDemand, waitMs: number, claimMs: number): Promise<boolean> {
    const { key, slot } = counter;
    if (this.#size >= MAX_WAITING) return Promise.resolve(false);
    const waiters = this.#waiters.get(key) ?? new Map<number, Waiter>();
    this.#waiters.set(key, waiters);
    this.#size += 1;
    this.#looks ??= setInterval(() => this.#serveAll(), LOOK_MS);
    return new Promise((resolve) => {
      const end = (isTaken: boolean) => {
        clearTimeout(timer);
        if (waiters.get(slot) === waiter) waiters.delete(slot);
        if (waiters.size === 0) this.#waiters.delete(key);
        this.#size -= 1;
        if (this.#size === 0) {
          clearInterval(this.#looks as ReturnType<typeof setInterval>);
          this.#looks = undefined;
        }
        resolve(isTaken);
      };
      const waiter = { counter, claimMs, end };
      const timer = setTimeout(end, waitMs, false);
      const earlier = waiters.get(slot);
      // If the same request asks again, because its first call was lost, it keeps its place.
      waiters.set(slot, waiter);
      earlier?.end(false);
      this.serve(key);
    });
  }

  /** Ends the wait for a slot that was given back. */
  leave({ key, slot }: SlotCounter): void {
    this.#waiters.get(key)?.get(slot)?.end(false);
  }

  /** Takes the free slots of a counter for the first calls that wait for them. */
  serve(key: string): void {
    const waiters = this.#waiters.get(key);
    if (!waiters) return;
    const now = Date.now();
    let row = this.#read(now)(key);
    for (const { counter, claimMs, end } of waiters.values()) {
      // Another one may be of a tier with more slots.
      if (openSlots(row, now).length >= counter.ceiling) continue;
      row = takeSlot({ ...counter, windowMs: claimMs }, row, now);
      this.#write(new Map([[key, row]]), now);
      end(true);
    }
  }

  #serveAll(): void {
    for (const key of this.#waiters.keys()) this.serve(key);
  }
}
