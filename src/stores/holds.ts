import { type Counter, hasRoom, storedKey, type Tally } from "../engine/fixed-window.ts";

/** A conditional charge whose fate is still open. */
export interface Hold {
  readonly counters: readonly Counter[];
  /** The time by which it was charged, in milliseconds since the Unix epoch. */
  readonly now: number;
}

interface OpenHold extends Hold {
  readonly settled: Promise<void>;
  readonly settle: () => void;
  readonly timer: ReturnType<typeof setTimeout>;
}

/** After this long a hold is forgotten: whoever opened it is gone, and its charge stays. */
const FORGET_AFTER_MS = 10_000;

/** The open holds of one Durable Object. They live in memory: what they charged is in storage. */
export class Holds {
  readonly #open = new Map<string, OpenHold>();

  open(counters: readonly Counter[], now: number): string {
    // Not a number in sequence: after a restart it would name somebody else's hold.
    const id = crypto.randomUUID();
    const { promise: settled, resolve: settle } = Promise.withResolvers<void>();
    const timer = setTimeout(() => this.close(id), FORGET_AFTER_MS);
    this.#open.set(id, { counters, now, settled, settle, timer });
    return id;
  }

  /** Ends a hold and wakes who waits for it. Undefined when it is not open any more. */
  close(id: string): Hold | undefined {
    const hold = this.#open.get(id);
    if (!hold) return undefined;
    this.#open.delete(id);
    clearTimeout(hold.timer);
    hold.settle();
    return hold;
  }

  /** Ends the holds on a counter that is reset: what they have charged is gone already. */
  drop(counters: readonly Counter[], now: number): void {
    const keys = new Set(counters.map((counter) => storedKey(counter, now)));
    for (const [id, hold] of this.#open) {
      if (hold.counters.some((counter) => keys.has(storedKey(counter, hold.now)))) this.close(id);
    }
  }

  /**
   * For counters of which some have no room: a promise of the next hold's end, if the open ones
   * could make room for all by being given back; otherwise undefined, and waiting is in vain.
   */
  hope(counters: readonly Counter[], tallies: readonly Tally[], now: number) {
    if (this.#open.size === 0) return undefined;
    const relevant = new Set<OpenHold>();
    for (const [index, counter] of counters.entries()) {
      const { count } = tallies[index] as Tally;
      if (hasRoom(counter, count)) continue;
      const key = storedKey(counter, now);
      let held = 0;
      for (const hold of this.#open.values()) {
        const cost = costOn(key, hold);
        if (cost > 0) relevant.add(hold);
        held += cost;
      }
      if (!hasRoom(counter, count - held)) return undefined;
    }
    if (relevant.size === 0) return undefined;
    return Promise.race([...relevant].map(({ settled }) => settled));
  }
}

function costOn(key: string, { counters, now }: Hold): number {
  const held = counters.find((counter) => !counter.checkOnly && storedKey(counter, now) === key);
  return held?.cost ?? 0;
}
