import type { Counter } from "../../src/engine/counter.ts";
import type { Isolate } from "./isolate.ts";

/** A request on its way to a decision. */
export interface Request {
  readonly client: number;
  readonly isolate: Isolate;
  /** When it came, by the true time. */
  readonly at: number;
  /** What the store answered last, and when it decided. None while it was not asked. */
  call: { readonly decidedAt: number; readonly admitted: boolean } | undefined;
}

/** A counter that remembers whose it is. Stores hand on all of a counter, so it stays with it. */
interface Traced extends Counter {
  readonly request: Request;
}

export function traced(counter: Counter, request: Request): Counter {
  return { ...counter, request } as Traced;
}

export function requestOf(counter: Counter): Request {
  return (counter as Traced).request;
}
