import type { Counter, Tally, UnusedQuota } from "../engine/counter.ts";
import type { Store, Verdict } from "./store.ts";

/** A call to the store that has ended. */
export interface StoreCall {
  /** In milliseconds, by this isolate's clock. */
  readonly durationMs: number;
  /** Whether the call has failed, also because it took too long. */
  readonly failed: boolean;
  /** An estimate of the billed commands; 0 if the call failed or the store has no commands. */
  readonly commands: number;
}

/** Records the calls to a store. Must not throw. */
export interface StoreMeter {
  recordStoreCall(call: StoreCall): void;
}

/** Estimates the number of billed commands of a call, from its arguments and its result. */
export interface CommandEstimate {
  decide(
    groups: readonly (readonly Counter[])[],
    verdict: Verdict,
    unused: readonly UnusedQuota[],
  ): number;
  adjust(counters: readonly Counter[], tallies: readonly Tally[]): number;
  reset(counters: readonly Counter[]): number;
}

/**
 * Wraps a store so that its calls are measured. Decisions from memory do not reach this store. The
 * calls of background tasks, such as the blocks of leases, and settlements do reach it.
 *
 * @param estimate undefined if the store has no billed commands
 */
export function withMeasurement(
  store: Store,
  meter: StoreMeter,
  estimate?: CommandEstimate,
): Store {
  async function measure<Result>(
    call: () => Promise<Result>,
    commandsOf: (result: Result) => number | undefined,
  ): Promise<Result> {
    const startedAt = Date.now();
    let failed = true;
    let commands = 0;
    try {
      const result = await call();
      failed = false;
      commands = commandsOf(result) ?? 0;
      return result;
    } finally {
      // The clock may have gone back.
      const durationMs = Math.max(0, Date.now() - startedAt);
      meter.recordStoreCall({ durationMs, failed, commands });
    }
  }

  return {
    decide: (groups, now, unused) =>
      measure(
        () => store.decide(groups, now, unused),
        (verdict) => estimate?.decide(groups, verdict, unused ?? []),
      ),
    adjust: (counters, now) =>
      measure(
        () => store.adjust(counters, now),
        (tallies) => estimate?.adjust(counters, tallies),
      ),
    reset: (counters, now) =>
      measure(
        () => store.reset(counters, now),
        () => estimate?.reset(counters),
      ),
  };
}
