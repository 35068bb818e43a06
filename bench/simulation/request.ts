import type { Counter, Demand } from "../../src/engine/counter.ts";
import type { Isolate } from "./fleet.ts";

/** A request that waits for its decision. */
export interface Request {
  readonly client: number;
  readonly isolate: Isolate;
  /** The true time at which the request arrived. */
  readonly at: number;
  /** The store's last answer for this request; undefined if there was none. */
  answer: { readonly decidedAt: number; readonly admitted: boolean } | undefined;
}

/** A counter with its request. Stores copy all fields of a counter, also the request. */
interface CounterOfRequest extends Demand {
  readonly request: Request;
}

export function withRequest(counter: Demand, request: Request): Demand {
  return { ...counter, request } as CounterOfRequest;
}

export function requestOf(counter: Counter): Request {
  return (counter as CounterOfRequest).request;
}
