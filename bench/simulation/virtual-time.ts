import { type Actor, WORLD } from "./actor.ts";
import { type Event, EventQueue } from "./event-queue.ts";

/** Whether this thread's clock and timers are those of a simulation. */
let isTakenOver = false;

/**
 * Time that passes only from event to event.
 *
 * While it runs, `Date.now`, `setTimeout` and `clearTimeout` are those of the actor to whom the
 * event happens, in this whole thread. Between two events all promises are carried on as far as they
 * go, so what happens does not depend on how fast the machine is.
 */
export class VirtualTime {
  /** The true time: milliseconds since the Unix epoch, with fractions. */
  now: number;
  #actor: Actor = WORLD;
  #planned = 0;
  #failure: { error: unknown } | undefined;
  readonly #queue = new EventQueue();

  constructor(startsAt: number) {
    this.now = startsAt;
  }

  /** Plans something. Nothing happens in the past. */
  at(at: number, actor: Actor, task: () => void): Event {
    const event: Event = { at: Math.max(at, this.now), order: this.#planned++, actor, task };
    this.#queue.push(event);
    return event;
  }

  /** From here on the event happens to somebody else. */
  continueAs(actor: Actor): void {
    this.#actor = actor;
  }

  /** Ends the run with an error: for what goes wrong in promises that nobody waits for. */
  fail(error: unknown): void {
    this.#failure ??= { error };
  }

  /** Until nothing is planned any more. */
  async run(): Promise<void> {
    const restore = this.#takeOver();
    try {
      for (let event = this.#queue.pop(); event; event = this.#queue.pop()) {
        if (!event.task || !event.actor.isAlive) continue;
        this.now = event.at;
        this.#actor = event.actor;
        event.task();
        await promisesCarriedOn();
        if (this.#failure) throw this.#failure.error;
      }
    } finally {
      restore();
    }
  }

  #takeOver(): () => void {
    if (isTakenOver) throw new Error("another simulation runs in this thread");
    isTakenOver = true;
    const { setTimeout, clearTimeout } = globalThis;
    const { now } = Date;
    Date.now = () => Math.floor(this.now + this.#actor.skewMs);
    const start = (task: () => void, ms = 0) => this.at(this.now + ms, this.#actor, task);
    const stop = (event: Event) => {
      event.task = undefined;
    };
    Object.assign(globalThis, { setTimeout: start, clearTimeout: stop });
    return () => {
      isTakenOver = false;
      Date.now = now;
      Object.assign(globalThis, { setTimeout, clearTimeout });
    };
  }
}

/** Node runs all microtasks before the next immediate. */
function promisesCarriedOn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
