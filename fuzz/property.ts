import fc from "fast-check";
import type { Outcome, RunOptions, Target } from "./target.ts";

/** A case that takes longer is a finding, in milliseconds: a client may send many of them. */
export const SLOW_MS = 50;

/** How often in a row a case must be slow. Other programs or garbage collection may delay one run. */
const SLOW_RUNS = 5;

/** The most characters of a finding that are printed. */
const MAX_PRINTED = 2000;

/** A target with one arbitrary. `assertHolds` throws for a value without the property. */
export function createTarget<Value>(
  name: string,
  about: string,
  arbitrary: fc.Arbitrary<Value>,
  assertHolds: (value: Value) => void,
): Target {
  const test = fc.property(arbitrary, assertHolds);
  return { name, about, check: (options) => run(test, options) };
}

/** The same, for an asynchronous property. */
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
 * The CPU time of this thread, in milliseconds; the time of a clock where the runtime does not report
 * CPU time. On a busy machine a clock includes the work of other programs.
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
    // workerd has no such function.
    return undefined;
  }
}

/**
 * Runs an action and returns its result.
 *
 * @throws when it takes longer than `SLOW_MS` in each of `SLOW_RUNS` runs
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

/** Runs a property of either of fast-check's two kinds. */
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
