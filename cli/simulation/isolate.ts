import { inTime } from "../../src/stores/deadline.ts";
import { withDenialCache } from "../../src/stores/isolate/denial-cache.ts";
import { withLeases } from "../../src/stores/isolate/leases.ts";
import type { Store } from "../../src/stores/store.ts";
import type { Actor } from "./actor.ts";

/** The default of Weir's `timeoutMs`. */
const TIMEOUT_MS = 1000;

/** One of many isolates that run Weir. Its leases and its denial cache are lost when it ends. */
export class Isolate implements Actor {
  readonly skewMs: number;
  isAlive = true;
  /** The true time at which the isolate ended; undefined while it runs. */
  diedAt: number | undefined;
  /** The number of requests that wait for a decision. */
  waiting = 0;
  /** The store with the wrappers of src/stores/create-store.ts, without the breaker. */
  readonly store: Store;

  constructor(skewMs: number, connect: (isolate: Isolate) => Store, timeoutMs = TIMEOUT_MS) {
    this.skewMs = skewMs;
    const { decide, adjust, reset } = connect(this);
    const limited: Store = {
      decide: (...args) => decide(...args).map((answer) => inTime(() => answer, timeoutMs)),
      adjust: (...args) => inTime(() => adjust(...args), timeoutMs),
      reset,
    };
    this.store = withLeases(withDenialCache(limited), { timeoutMs, background: () => {} });
  }

  die(at: number): void {
    this.isAlive = false;
    this.diedAt = at;
  }
}
