import { waitUntil } from "cloudflare:workers";
import type { Counter } from "../engine/counter.ts";
import type { Breaker } from "./breaker.ts";
import { inTime } from "./deadline.ts";
import type { Store } from "./store.ts";

/** A REST call to Upstash, or a call to a Durable Object, that has ended. */
export interface StoreCall {
  /** In milliseconds, by this isolate's clock. */
  readonly durationMs: number;
  /** Whether the call has failed, also because it took too long. */
  readonly failed: boolean;
  /** The commands that the store bills; 0 if the call failed or the store has no commands. */
  readonly commands: number;
}

/** Records the calls to a store. Must not throw. */
export interface StoreMeter {
  recordStoreCall(call: StoreCall): void;
}

/**
 * Makes a call to a store or to one of its objects. Decisions from memory need no call.
 *
 * @param counters the counters that determine which object is called
 * @param commandsOf returns the billed commands from the result
 */
export type MakeCall = <Result>(
  counters: readonly Counter[],
  call: () => Promise<Result>,
  commandsOf?: (result: Result) => number,
) => Promise<Result>;

interface CallOptions {
  /** The deadline of a call, in milliseconds. */
  readonly timeoutMs: number;
  /** Undefined if nothing is measured, or if the store measures its own calls: see {@link objectMeter}. */
  readonly meter?: StoreMeter | undefined;
  /** Returns the breaker that stops the calls for these counters. */
  readonly breakerOf: (counters: readonly Counter[]) => Breaker;
}

/**
 * Returns a function that makes calls. Each call has a deadline, is measured, and runs to its end even if the
 * client hangs up. While calls fail, a breaker stops further calls.
 */
export function callMaker({ timeoutMs, meter, breakerOf }: CallOptions): MakeCall {
  return (counters, call, commandsOf = () => 0) =>
    breakerOf(counters).run(counters, (waitedMs) => {
      // In a busy isolate, the wait may have lasted much longer than a quarter of the deadline.
      const limited = () => inTime(call, Math.max(timeoutMs / 2, timeoutMs - waitedMs));
      const measured = meter ? () => measure(meter, limited, commandsOf) : limited;
      return kept(measured());
    });
}

/** Measures a call to a Durable Object, and returns the call's own result. */
export type MeasureCall = <Result>(call: () => Promise<Result>) => Promise<Result>;

/**
 * Returns a function that records each call to a Durable Object. A decision can take several of these calls, and a
 * call can decide many requests. A call without an answer at the deadline has failed, but its caller may go on waiting.
 */
export function objectMeter(meter: StoreMeter, timeoutMs: number): MeasureCall {
  return (call) => {
    const result = call();
    void kept(
      measure(
        meter,
        () => inTime(() => result, timeoutMs),
        () => 0,
      ),
    );
    return result;
  };
}

/**
 * Keeps the invocation alive until a task has ended, and returns the task. When a client hangs up, the runtime
 * cancels the invocation at its next `await`, unless a promise passed to `waitUntil` is pending. The code around a
 * call (breaker, denial cache, leases) runs synchronously until it starts the next call, so this code runs to its
 * end as well.
 */
function kept<Result>(task: Promise<Result>): Promise<Result> {
  // The caller handles a failure. Without this `catch`, the platform would also report it as unhandled.
  waitUntil(task.catch(() => {}));
  return task;
}

/**
 * Wraps a store that sends the calls of several requests together. Each request stays alive until its answers
 * arrive.
 */
export function withKeepAlive({ decide, adjust, reset }: Store): Store {
  return {
    decide: (...args) => decide(...args).map(kept),
    adjust: (...args) => kept(adjust(...args)),
    reset: (...args) => kept(reset(...args)),
  };
}

async function measure<Result>(
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
