import { describe, expect, it, vi } from "vitest";
import { READERS, type Reader } from "./readers.ts";
import { WORST_CASES, type WorstCase } from "./worst-cases.ts";

vi.mock("cloudflare:workers", () => ({ waitUntil() {} }));

/**
 * The maximum time, in milliseconds, for a request of the greatest length that Cloudflare accepts.
 */
const LIMIT_MS = 5;
/**
 * Times below this value, in milliseconds, are too short to show how the time grows with the
 * length.
 */
const SHORT_MS = 2.5;
/**
 * If the length grows fourfold, linear time grows fourfold, and quadratic time grows sixteenfold.
 */
const GROWTH = 4;
const MAX_GROWTH = 9;
/**
 * The maximum number of runs. Only the shortest run is compared, because other programs delay some
 * runs, and compilation delays the first runs.
 */
const RUNS = 150;
/** The number of runs after which a text is compared with a quarter of it. */
const FIRST_RUNS = 5;

/**
 * Measures how long a reader takes for a text, in milliseconds.
 *
 * @param enoughMs a time in milliseconds; the measurement ends after a run that takes at most this
 * time
 * @param maxRuns the maximum number of runs
 * @returns the time of the shortest run; undefined if no request can contain the text
 */
async function measure({ prepare }: Reader, text: string, enoughMs: number, maxRuns = RUNS) {
  const read = prepare(text);
  if (!read) return undefined;
  let shortest = Number.POSITIVE_INFINITY;
  for (let runs = 0; runs < maxRuns && shortest > enoughMs; runs++) {
    const startedAt = performance.now();
    await read();
    shortest = Math.min(shortest, performance.now() - startedAt);
  }
  return shortest;
}

/**
 * Describes the fault of a reader that takes too long, or whose time is not linear. Returns
 * undefined if there is no fault.
 */
async function faultOf(reader: Reader, make: WorstCase): Promise<string | undefined> {
  // Measures a quarter of the length first, because the whole length could take minutes if the time
  // is quadratic.
  const quarter = await measure(reader, make(reader.bytes / GROWTH), LIMIT_MS);
  if (quarter === undefined) return undefined;
  if (quarter > LIMIT_MS) return `${quarter.toFixed(1)} ms for a quarter`;
  const text = make(reader.bytes);
  const first = (await measure(reader, text, SHORT_MS, FIRST_RUNS)) ?? 0;
  if (first <= SHORT_MS) return undefined;
  // The shortest time of the quarter bounds the time of the whole, which is measured only until it
  // is within the bound.
  const shortest = (await measure(reader, make(reader.bytes / GROWTH), 0)) ?? 0;
  const bound = Math.max(SHORT_MS, Math.min(LIMIT_MS, MAX_GROWTH * shortest));
  const whole = first <= bound ? first : ((await measure(reader, text, bound)) ?? 0);
  if (whole > LIMIT_MS) return `${whole.toFixed(1)} ms`;
  return whole > bound ? `${(whole / shortest).toFixed(1)} times a quarter` : undefined;
}

describe("reading one request takes less than 5 ms in the worst case, and time linear in its length", () => {
  it.each(READERS.map((reader) => [reader.name, reader] as const))(
    "%s",
    async (_, reader) => {
      const faults: Record<string, string> = {};
      for (const [name, make] of WORST_CASES) {
        const fault = await faultOf(reader, make);
        if (fault) faults[name] = fault;
      }
      expect(faults).toEqual({});
    },
    120_000,
  );
});
