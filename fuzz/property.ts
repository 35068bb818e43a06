import fc from "fast-check";
import type { Effort, Outcome, Target } from "./target.ts";

/** A case that takes longer is a finding, in milliseconds: somebody may send many of them. */
export const SLOW_MS = 50;

/** How often a case has to be slow: now and then it is others, or this one tidying up. */
const SLOW_TIMES = 5;

/** Of a finding, this many characters are shown. */
const SHOWN = 2000;

/** A target that is one arbitrary and what has to hold of it. */
export function property<Value>(
  name: string,
  about: string,
  arbitrary: fc.Arbitrary<Value>,
  holds: (value: Value) => void,
): Target {
  const test = fc.property(arbitrary, holds);
  return { name, about, check: (effort) => run(test, effort) };
}

/** The same of something that answers later. */
export function asyncProperty<Value>(
  name: string,
  about: string,
  arbitrary: fc.Arbitrary<Value>,
  holds: (value: Value) => Promise<void>,
): Target {
  const test = fc.asyncProperty(arbitrary, holds);
  return { name, about, check: (effort) => run(test, effort) };
}

/**
 * How long this thread has worked, in milliseconds, where that can be told; what a clock shows on a
 * busy machine is partly the others'.
 */
export const workedMs: () => number = threadClock() ?? (() => performance.now());

interface Thread {
  threadCpuUsage(): { readonly user: number; readonly system: number };
}

function threadClock(): (() => number) | undefined {
  const { process } = globalThis as unknown as { process?: Thread };
  const worked = () => {
    const { user, system } = (process as Thread).threadCpuUsage();
    return (user + system) / 1000;
  };
  try {
    worked();
    return worked;
  } catch {
    // There is none in workerd.
    return undefined;
  }
}

/**
 * What an action comes to.
 *
 * @throws when it takes long, and again when it is tried anew
 */
export function inTime<Result>(act: () => Result): Result {
  let result: Result;
  let least = Number.POSITIVE_INFINITY;
  for (let times = 0; times < SLOW_TIMES; times++) {
    const start = workedMs();
    result = act();
    least = Math.min(least, workedMs() - start);
    if (least <= SLOW_MS) return result;
  }
  throw new Error(`takes ${Math.round(least)} ms`);
}

/** Runs a property, whichever of fast-check's two kinds it is. */
export async function run<Value>(
  test: fc.IProperty<[Value]> | fc.IAsyncProperty<[Value]>,
  { cases, seed }: Effort,
): Promise<Outcome> {
  const asAsync = test as fc.IAsyncProperty<[Value]>;
  const details = await fc.check(asAsync, { numRuns: cases, seed });
  const { failed, numRuns, counterexample, errorInstance } = details;
  if (!failed) return { cases: numRuns };
  const [smallest] = counterexample ?? [];
  const what = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  const cut = (text: string) => (text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text);
  return { cases: numRuns, finding: { smallest: cut(fc.stringify(smallest)), what: cut(what) } };
}
