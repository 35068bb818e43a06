import type { Counter } from "../engine/counter.ts";
import { aroundCalls } from "./around-calls.ts";
import type { Answer, Entry, EntryStore } from "./batch.ts";

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
  run(entries: readonly Entry[], answers: readonly (readonly Answer[])[]): number;
  reset(counters: readonly Counter[]): number;
}

/**
 * Wraps a store so that its calls are measured. Decisions from memory do not reach this store. The
 * calls of background tasks, such as the blocks of leases, and settlements do reach it.
 */
export function withMeasurement<Calls extends object>(store: Calls, meter: StoreMeter): Calls {
  return aroundCalls(store, (call) => measured(meter, call, () => 0));
}

/** Does the same for a store with billed commands. */
export function withMeasuredCommands(
  store: EntryStore,
  meter: StoreMeter,
  estimate: CommandEstimate,
): EntryStore {
  return {
    run: (entries) =>
      measured(
        meter,
        () => store.run(entries),
        (answers) => estimate.run(entries, answers),
      ),
    reset: (counters, now) =>
      measured(
        meter,
        () => store.reset(counters, now),
        () => estimate.reset(counters),
      ),
  };
}

async function measured<Result>(
  meter: StoreMeter,
  call: () => Promise<Result>,
  commandsOf: (result: Result) => number,
): Promise<Result> {
  const startedAt = Date.now();
  let failed = true;
  let commands = 0;
  try {
    const result = await call();
    failed = false;
    commands = commandsOf(result);
    return result;
  } finally {
    // The clock may have gone back.
    const durationMs = Math.max(0, Date.now() - startedAt);
    meter.recordStoreCall({ durationMs, failed, commands });
  }
}
