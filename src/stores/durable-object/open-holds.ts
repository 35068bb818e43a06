import { type Counter, storedKey, type Tally } from "../../engine/counter.ts";
import { hasQuota } from "../../engine/fixed-window.ts";

/** What a decision has charged here, as long as it can be given back. */
export interface Hold {
  readonly charges: readonly Charge[];
  /** The time by which it was charged, in milliseconds since the Unix epoch. */
  readonly now: number;
}

export interface Charge {
  readonly counter: Counter;
  readonly quota: number;
}

interface OpenHold extends Hold {
  /** By this object's clock. */
  readonly openedAt: number;
  /** What it has charged, by stored key. */
  readonly costs: ReadonlyMap<string, number>;
}

/** A call that waits for quota to be given back. */
interface Waiter {
  /** What its full counters lack, by stored key. */
  lacks: ReadonlyMap<string, number>;
  /** The number of the return that it was last woken by. */
  wokenBy: number;
  readonly wake: () => void;
}

/**
 * For this long a charge can be given back. A Worker whose client has hung up lives for no longer, so
 * nobody settles it later; and whether its request was admitted is not known here, so the charge stays.
 */
const SETTLED_WITHIN_MS = 30_000;

/** Charges remembered at most, of each kind. The oldest is forgotten, and so stays charged. */
const MAX_REMEMBERED = 4096;

/**
 * The conditional charges of one Durable Object, and the calls that wait for them. All of it lives in
 * memory; what was charged is in storage.
 *
 * There are two kinds. An open hold is one of several objects' charges while others are still asked:
 * calls without room wait for it. A final charge is the last object's, which decides: nobody waits for
 * it, but if its answer is lost, it can be given back as well.
 */
export class OpenHolds {
  readonly #open = new Map<string, OpenHold>();
  readonly #final = new Map<string, OpenHold>();
  /** Decisions given up before their charge arrived, and when: a late call must not charge. */
  readonly #givenUp = new Map<string, number>();
  /** In the order in which they came. */
  readonly #waiters = new Set<Waiter>();
  #returns = 0;

  open(id: string, charges: readonly Charge[], now: number): void {
    this.#add(this.#open, id, charges, now);
  }

  /** Remembers the charge of the object that decides. */
  addFinal(id: string, charges: readonly Charge[], now: number): void {
    this.#add(this.#final, id, charges, now);
  }

  isGivenUp(id: string | undefined): boolean {
    return id !== undefined && this.#givenUp.has(id);
  }

  /** Ends a hold. @returns what is to be given back; undefined where nothing is */
  settle(id: string, keep: boolean): Hold | undefined {
    const hold = this.#open.get(id) ?? this.#final.get(id);
    if (!hold) {
      if (!keep) remember(this.#givenUp, id, Date.now(), (at) => at);
      return undefined;
    }
    this.#end(id, hold, keep);
    return keep ? undefined : hold;
  }

  /** Ends the holds on a counter that is reset: what they have charged is gone already. */
  drop(counters: readonly Counter[], now: number): void {
    const keys = counters.map((counter) => storedKey(counter, now));
    for (const [id, hold] of [...this.#open, ...this.#final]) {
      if (keys.some((key) => hold.costs.has(key))) this.#end(id, hold, false);
    }
  }

  /**
   * What the full counters of a group lack, by stored key, if the open holds could make room for it by
   * being given back; otherwise undefined, and waiting is in vain.
   *
   * @param maxAgeMs holds that are older do not count: the Worker that opened them is gone
   */
  lacksOf(
    counters: readonly Counter[],
    tallies: readonly Tally[],
    now: number,
    maxAgeMs: number,
  ): ReadonlyMap<string, number> | undefined {
    if (this.#open.size === 0) return undefined;
    const lacks = new Map<string, number>();
    for (const [index, counter] of counters.entries()) {
      const { count } = tallies[index] as Tally;
      if (hasQuota(counter, count)) continue;
      lacks.set(storedKey(counter, now), count + counter.cost - counter.ceiling);
    }
    return this.#canReturn(lacks, maxAgeMs) ? lacks : undefined;
  }

  /** Starts to wait for holds to end. */
  waiter(maxWaitMs: number): Waiting {
    let resume = () => {};
    let timer: ReturnType<typeof setTimeout> | undefined;
    const waiter: Waiter = { lacks: new Map(), wokenBy: 0, wake: () => resume() };
    const waiting = {
      isOver: maxWaitMs <= 0,
      next: async (lacks: ReadonlyMap<string, number>) => {
        waiter.lacks = lacks;
        this.#waiters.add(waiter);
        // One timer for all of its waiting.
        timer ??= setTimeout(() => {
          waiting.isOver = true;
          resume();
        }, maxWaitMs);
        await new Promise<void>((resolve) => {
          resume = resolve;
        });
      },
      end: () => {
        if (timer !== undefined) clearTimeout(timer);
        // It was woken for quota that it has left, or that was too little for it.
        if (this.#waiters.delete(waiter) && waiter.wokenBy > 0) this.#wakeNext(waiter.lacks);
      },
      passOn: () => {
        if (waiter.wokenBy > 0) this.#wakeNext(waiter.lacks);
      },
    };
    return waiting;
  }

  #add(to: Map<string, OpenHold>, id: string, charges: readonly Charge[], now: number): void {
    const costs = new Map(charges.map(({ counter, quota }) => [storedKey(counter, now), quota]));
    remember(to, id, { charges, now, costs, openedAt: Date.now() }, ({ openedAt }) => openedAt);
  }

  #end(id: string, hold: OpenHold, keep: boolean): void {
    this.#open.delete(id);
    this.#final.delete(id);
    if (!keep) {
      this.#returns += 1;
      this.#wakeNext(hold.costs);
      return;
    }
    for (const waiter of this.#waiters) {
      const isConcerned = [...waiter.lacks.keys()].some((key) => hold.costs.has(key));
      if (isConcerned && !this.#canReturn(waiter.lacks, SETTLED_WITHIN_MS)) waiter.wake();
    }
  }

  /**
   * Wakes the first of those that lack one of these counters; when it is done, it wakes the next. So
   * quota that is given back costs about two decisions, however many wait for it.
   */
  #wakeNext(keys: ReadonlyMap<string, unknown>): void {
    for (const waiter of this.#waiters) {
      if (waiter.wokenBy === this.#returns) continue;
      if (![...waiter.lacks.keys()].some((key) => keys.has(key))) continue;
      waiter.wokenBy = this.#returns;
      waiter.wake();
      return;
    }
  }

  #canReturn(lacks: ReadonlyMap<string, number>, maxAgeMs: number): boolean {
    const time = Date.now();
    const isEnough = ([key, lack]: [string, number]) => {
      let left = lack;
      for (const { costs, openedAt } of this.#open.values()) {
        if (Math.abs(time - openedAt) < maxAgeMs) left -= costs.get(key) ?? 0;
        if (left <= 0) return true;
      }
      return false;
    };
    return lacks.size > 0 && [...lacks].every(isEnough);
  }
}

/** One call's waiting, however often it has to. */
export interface Waiting {
  /** Whether it has waited for as long as it may. */
  readonly isOver: boolean;
  /** Waits until a hold ends that may make room, or time is up. */
  next(lacks: ReadonlyMap<string, number>): Promise<void>;
  /** To be called when the call found no room once more, but goes on waiting. */
  passOn(): void;
  /** To be called at last. */
  end(): void;
}

/** Adds an entry, and drops those that are too old or too many: the first ones, for they are older. */
function remember<Value>(
  map: Map<string, Value>,
  id: string,
  value: Value,
  timeOf: (value: Value) => number,
): void {
  const oldest = timeOf(value) - SETTLED_WITHIN_MS;
  for (const [key, each] of map) {
    if (timeOf(each) > oldest && map.size < MAX_REMEMBERED) break;
    map.delete(key);
  }
  map.set(id, value);
}
