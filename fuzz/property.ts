import fc from "fast-check";
import type { Outcome, RunOptions, Target } from "./target.ts";

/**
 * The maximum CPU time of a case, in milliseconds. A slower case is a finding, because clients may
 * send it many times.
 */
export const SLOW_MS = 50;

/**
 * A case counts as slow only if this number of runs in a row are slow, because other programs or
 * garbage collection may delay a single run.
 */
const SLOW_RUNS = 5;

/** The maximum length of each text of a finding, in characters. Longer texts are cut. */
const MAX_PRINTED = 2000;

/** Creates a target. `assertHolds` throws an error if a value does not have the property. */
export function createTarget<Value>(
  name: string,
  about: string,
  arbitrary: fc.Arbitrary<Value>,
  assertHolds: (value: Value) => void,
): Target {
  const test = fc.property(arbitrary, assertHolds);
  return { name, about, check: (options) => run(test, options) };
}

/** Creates the same kind of target for an asynchronous property. */
export function createAsyncTarget<Value>(
  name: string,
  about: string,
  arbitrary: fc.Arbitrary<Value>,
  assertHolds: (value: Value) => Promise<void>,
): Target {
  const test = fc.asyncProperty(arbitrary, assertHolds);
  return { name, about, check: (options) => run(test, options) };
}

/**
 * Returns the CPU time of this thread, in milliseconds. If the runtime does not report CPU time, it
 * returns the time of a clock. On a busy machine, a clock also measures the work of other programs.
 */
export const cpuTimeMs: () => number = threadClock() ?? (() => performance.now());

interface Thread {
  threadCpuUsage(): { readonly user: number; readonly system: number };
}

function threadClock(): (() => number) | undefined {
  const { process } = globalThis as unknown as { process?: Thread };
  const cpuTime = () => {
    const { user, system } = (process as Thread).threadCpuUsage();
    return (user + system) / 1000;
  };
  try {
    cpuTime();
    return cpuTime;
  } catch {
    // workerd does not have this function.
    return undefined;
  }
}

/**
 * Runs an action and returns its result.
 *
 * @throws if the action takes longer than `SLOW_MS` in each of `SLOW_RUNS` runs
 */
export function inTime<Result>(act: () => Result): Result {
  let result: Result;
  let shortest = Number.POSITIVE_INFINITY;
  for (let runs = 0; runs < SLOW_RUNS; runs++) {
    const start = cpuTimeMs();
    result = act();
    shortest = Math.min(shortest, cpuTimeMs() - start);
    if (shortest <= SLOW_MS) return result;
  }
  throw new Error(`takes ${Math.round(shortest)} ms`);
}

/** Runs a synchronous or asynchronous property of fast-check. */
export async function run<Value>(
  test: fc.IProperty<[Value]> | fc.IAsyncProperty<[Value]>,
  { cases, seed }: RunOptions,
): Promise<Outcome> {
  const asAsync = test as fc.IAsyncProperty<[Value]>;
  const details = await fc.check(asAsync, { numRuns: cases, seed });
  const { failed, numRuns, counterexample, errorInstance } = details;
  if (!failed) return { cases: numRuns };
  const [smallest] = counterexample ?? [];
  const what = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  const cut = (text: string) =>
    text.length > MAX_PRINTED ? `${text.slice(0, MAX_PRINTED)}…` : text;
  return { cases: numRuns, finding: { smallest: cut(fc.stringify(smallest)), what: cut(what) } };
}
