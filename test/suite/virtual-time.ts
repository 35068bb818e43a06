import { Heap } from "../../src/stores/heap.ts";

/** An isolate with a clock of its own. */
export interface VirtualIsolate {
  /** While this is false, no event of the isolate happens. */
  isAlive: boolean;
  /** The time on its clock minus the true time, in milliseconds. */
  offsetMs: number;
}

interface Event<Isolate> {
  readonly at: number;
  readonly order: number;
  readonly isolate: Isolate | undefined;
  /** Undefined after the event was cancelled. */
  task: (() => void) | undefined;
}

/** More microtasks than a decision takes. */
const TURNS = 60;

/** A clock that jumps from event to event. */
export class VirtualTime<Isolate extends VirtualIsolate> {
  /** The true time, in milliseconds since the Unix epoch. */
  now = 0;
  /** How far all clocks have stepped forward, in milliseconds. */
  stepMs = 0;
  /** The isolate whose code runs; undefined for the store and the clients. */
  current: Isolate | undefined;
  readonly #queue = new Heap<Event<Isolate>>(
    (one, other) => one.at < other.at || (one.at === other.at && one.order < other.order),
  );
  #planned = 0;

  /** Plans an event of an isolate, or of the store and the clients. */
  plan(ms: number, isolate: Isolate | undefined, task: () => void): Event<Isolate> {
    const event = { at: this.now + ms, order: this.#planned++, isolate, task };
    this.#queue.add(event);
    return event;
  }

  /**
   * Runs all events, also those that are planned meanwhile.
   *
   * @param idle resolves when no promise can proceed without a further event
   */
  async runAll(idle: () => Promise<void> = microtasks): Promise<void> {
    const queue = this.#queue;
    for (let event = queue.first; event; event = queue.first) {
      queue.removeFirst();
      if (!event.task || event.isolate?.isAlive === false) continue;
      this.now = event.at;
      this.current = event.isolate;
      event.task();
      await idle();
    }
  }

  /** Replaces the clock and the timers by those of the current isolate. @returns a function that restores them */
  install(): () => void {
    const { setTimeout, clearTimeout } = globalThis;
    const { now } = Date;
    Date.now = () => this.now + this.stepMs + (this.current?.offsetMs ?? 0);
    const start = (task: () => void, ms = 0) => this.plan(ms, this.current, task);
    const stop = (event: Event<Isolate> | undefined) => {
      if (event) event.task = undefined;
    };
    Object.assign(globalThis, { setTimeout: start, clearTimeout: stop });
    return () => {
      Date.now = now;
      Object.assign(globalThis, { setTimeout, clearTimeout });
    };
  }
}

/** Lets all promises proceed that wait for nothing else. */
export async function microtasks(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) await undefined;
}
