import type { Actor } from "./actor.ts";

/** A planned event. */
export interface Event {
  /** Milliseconds since the Unix epoch, with fractions. */
  readonly at: number;
  /** Events at the same time happen in the order in which they were planned. */
  readonly order: number;
  readonly actor: Actor;
  /** Undefined after the event has been cancelled. */
  task: (() => void) | undefined;
}

/** The planned events, ordered by time: a binary heap. */
export class EventQueue {
  readonly #heap: Event[] = [];

  push(event: Event): void {
    const heap = this.#heap;
    let place = heap.length;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (isBefore(heap[parent] as Event, event)) break;
      heap[place] = heap[parent] as Event;
      place = parent;
    }
    heap[place] = event;
  }

  /** Removes and returns the earliest event, unless it is after a time. */
  pop(until: number): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    if (!first || first.at > until) return undefined;
    const last = heap.pop();
    if (heap.length === 0 || !last) return first;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Event, heap[child] as Event)) {
        child++;
      }
      if (isBefore(last, heap[child] as Event)) break;
      heap[place] = heap[child] as Event;
      place = child;
    }
    heap[place] = last;
    return first;
  }
}

function isBefore(one: Event, other: Event): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}
