import { withDeadline } from "../../src/stores/deadline.ts";
import { withDenialCache } from "../../src/stores/isolate/with-denial-cache.ts";
import { withLeases } from "../../src/stores/isolate/with-leases.ts";
import type { Store } from "../../src/stores/store.ts";
import type { Actor } from "./actor.ts";

/** What a decision has by default. */
const TIMEOUT_MS = 1000;

/** One of many that run Weir: what it keeps in memory dies with it. */
export class Isolate implements Actor {
  readonly skewMs: number;
  isAlive = true;
  /** By the true time; undefined while it lives. */
  diedAt: number | undefined;
  /** Requests that wait for a decision. */
  waiting = 0;
  /** What decides here, as src/stores/create-store.ts puts it together. */
  readonly store: Store;

  constructor(skewMs: number, connect: (isolate: Isolate) => Store) {
    this.skewMs = skewMs;
    this.store = withLeases(withDenialCache(withDeadline(connect(this), TIMEOUT_MS)), {
      timeoutMs: TIMEOUT_MS,
      background: () => {},
    });
  }

  die(at: number): void {
    this.isAlive = false;
    this.diedAt = at;
  }
}
