import { Heap } from "../../src/stores/heap.ts";

/** A part of the simulation that has events and a clock of its own. */
export interface Actor {
  /** The time on the actor's clock minus the true time, in milliseconds. */
  readonly skewMs: number;
  /** If false, the simulation drops the actor's events: no timer fires and no answer arrives. */
  readonly isAlive: boolean;
}

/** The actor for the traffic, the network and the store, whose clock shows the true time. */
export const WORLD: Actor = { skewMs: 0, isAlive: true };

/** A planned event. */
interface Event {
  /** Milliseconds since the Unix epoch, with fractions. */
  readonly at: number;
  /** Events at the same time happen in the order in which they were planned. */
  readonly order: number;
  readonly actor: Actor;
  /** Undefined after the event has been cancelled. */
  task: (() => void) | undefined;
}

function isBefore(one: Event, other: Event): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

/** Whether a simulation has replaced the clock and the timers of this thread. */
let isReplaced = false;

/**
 * A clock that jumps from event to event.
 *
 * While it runs, it replaces `Date.now`, `setTimeout` and `clearTimeout` in this thread with the clock and
 * the timers of the actor of the current event. Between two events it waits until no promise can proceed,
 * so results do not depend on the speed of the machine.
 */
export class VirtualTime {
  /** The true time: milliseconds since the Unix epoch, with fractions. */
  now: number;
  #actor: Actor = WORLD;
  #planned = 0;
  #failure: { error: unknown } | undefined;
  readonly #queue = new Heap<Event>(isBefore);

  constructor(startsAt: number) {
    this.now = startsAt;
  }

  /** Plans an event. A time in the past counts as now. */
  at(at: number, actor: Actor, task: () => void): Event {
    const event: Event = { at: Math.max(at, this.now), order: this.#planned++, actor, task };
    this.#queue.add(event);
    return event;
  }

  /** For the rest of the current event, `Date.now` and new timers use the clock of this actor. */
  continueAs(actor: Actor): void {
    this.#actor = actor;
  }

  /** Ends the run with this error. A promise that no code awaits reports its rejection in this way. */
  fail(error: unknown): void {
    this.#failure ??= { error };
  }

  /**
   * Runs all events up to a time, also events that are planned during the run. Until the returned promise resolves, no
   * other code of this thread runs, so no other code sees the replaced clock.
   *
   * @param until the time of the last event; if it is not set, all events run
   * @throws {Error} when another simulation runs in this thread, or the error passed to `fail`
   */
  async run(until = Number.POSITIVE_INFINITY): Promise<void> {
    const restore = this.#replaceGlobals();
    try {
      for (let event = this.#queue.first; event && event.at <= until; event = this.#queue.first) {
        this.#queue.removeFirst();
        if (!event.task || !event.actor.isAlive) continue;
        this.now = event.at;
        this.#actor = event.actor;
        event.task();
        await microtasksDone();
        if (this.#failure) throw this.#failure.error;
      }
    } finally {
      restore();
    }
  }

  #replaceGlobals(): () => void {
    if (isReplaced) throw new Error("Another simulation runs in this thread.");
    isReplaced = true;
    const { setTimeout, clearTimeout } = globalThis;
    const { now } = Date;
    Date.now = () => Math.floor(this.now + this.#actor.skewMs);
    const start = (task: () => void, ms = 0) => this.at(this.now + ms, this.#actor, task);
    const stop = (event: Event) => {
      event.task = undefined;
    };
    Object.assign(globalThis, { setTimeout: start, clearTimeout: stop });
    return () => {
      isReplaced = false;
      Date.now = now;
      Object.assign(globalThis, { setTimeout, clearTimeout });
    };
  }
}

/**
 * Resolves when all microtasks have run. Node calls the callbacks of `nextTick` when no microtask is left, and
 * before timers, input and output.
 */
function microtasksDone(): Promise<void> {
  return new Promise((resolve) => {
    queueMicrotask(() => process.nextTick(resolve));
  });
}
