import type { Counter } from "../engine/fixed-window.ts";
import type { Store } from "./store.ts";
import { StoreError } from "./store-error.ts";

/** Failures in a row after which a store is no longer asked. */
export const FAILURES_TO_OPEN = 5;

/** How long it is left alone then, and between probes, in milliseconds. */
export const REST_MS = 1000;

/** Whether a store is asked (`closed`), or left alone but for a probe now and then (`open`). */
export type BreakerState = "closed" | "open";

export interface BreakerOptions {
  /** A probe that has not ended after this long is taken for lost, in milliseconds. */
  readonly timeoutMs: number;
  /**
   * How many clients' calls must be among the failures. Where each client has a place of its own, one
   * of them alone can bring its place down, and is not to take the others with it. Default: 1.
   */
  readonly clients?: number;
  /** Is told of each change. */
  readonly onChange?: (state: BreakerState) => void;
  readonly clock?: () => number;
}

/**
 * A circuit breaker: a store that failed a few times in a row is not asked for a while, so that an
 * outage delays no more than those few requests, and does not keep a struggling store from recovering.
 *
 * While it is open, calls fail at once with `resting`. After {@link REST_MS} one call goes through as a
 * probe, one at a time: its success closes the breaker, its failure lets the store rest again. It is
 * about one isolate: what it keeps are plain values, and a request never waits for another's probe.
 */
export function withBreaker(
  store: Store,
  { timeoutMs, clients = 1, onChange = () => {}, clock = Date.now }: BreakerOptions,
): Store {
  let failures = 0;
  /** Who was asked about in these failures: no more of them than are needed. */
  const failedFor = new Set<string>();
  let isOpen = false;
  /** What the last failure was, for operators. */
  let last = "internal";
  /** While open: when the next probe may go. A clock that goes back only makes it come later. */
  let probeAt = 0;
  let probes = 0;

  async function through<Result>(
    counter: Counter | undefined,
    call: () => Promise<Result>,
  ): Promise<Result> {
    let probe: number | undefined;
    if (isOpen) {
      const now = clock();
      if (now < probeAt && probeAt - now <= timeoutMs + REST_MS) {
        const row = `${failures} failures in a row, the last one: ${last}`;
        throw new StoreError("resting", `not asked, after ${row}`);
      }
      probe = ++probes;
      // Until this one has ended, or is taken for lost, nobody else probes.
      probeAt = now + timeoutMs;
    }
    try {
      const result = await call();
      if (isOpen) onChange("closed");
      isOpen = false;
      failures = 0;
      failedFor.clear();
      return result;
    } catch (error) {
      failures += 1;
      if (failedFor.size < clients) failedFor.add(counter?.identity ?? "");
      const opens = !isOpen && failures >= FAILURES_TO_OPEN && failedFor.size >= clients;
      last = error instanceof StoreError ? error.failure : "internal";
      // Calls that were under way when it opened, and lost probes, say nothing of the one under way.
      if (opens || (isOpen && probe === probes)) probeAt = clock() + REST_MS;
      if (opens) {
        isOpen = true;
        onChange("open");
      }
      throw error;
    }
  }

  return {
    decide: (groups, now, unused) =>
      through(groups[0]?.[0], () => store.decide(groups, now, unused)),
    adjust: (counters, now) => through(counters[0], () => store.adjust(counters, now)),
    reset: (counters, now) => through(counters[0], () => store.reset(counters, now)),
  };
}
