import { describe, expect, it, vi } from "vitest";
import { HEADER_BYTES, READERS, type Reader } from "./readers.ts";
import { WORST_CASES, type WorstCase } from "./worst-cases.ts";

vi.mock("cloudflare:workers", () => ({ waitUntil() {} }));

/**
 * The maximum time for a request of the greatest length that Cloudflare accepts. The unit is the time
 * of one {@link referencePass}, because a time in milliseconds would depend on the machine. The
 * slowest readers take about 5 passes.
 */
const MAX_PASSES = 20;
/** A reader whose shortest run takes longer than this number of passes is not measured further. */
const HOPELESS = 5 * MAX_PASSES;
/** Times below this number of passes are too short to show how the time grows with the length. */
const SHORT_PASSES = 4;
/**
 * The ratio of two lengths, and the maximum ratio of their times. Linear time would grow eightfold, and quadratic time
 * 64-fold. The bound is far from both, because only the longer text causes garbage collection.
 */
const GROWTH = 8;
const MAX_GROWTH = 28;
/**
 * The maximum number of rounds. In each round, the reference and the reader run one after the other,
 * so that a busy machine delays both. Only their shortest runs are compared, because other programs
 * delay some runs, and compilation delays the first runs.
 */
const ROUNDS = 150;
/** The number of rounds after which a text is compared with a part of it. */
const MIN_ROUNDS = 20;
/** The number of rounds before a text that takes long is compared with a part of it. */
const FIRST_ROUNDS = 5;

const REFERENCE = "name=text; ".repeat(HEADER_BYTES).slice(0, HEADER_BYTES);

/** Reads a header field of the greatest length in linear time, with one short text for each word. */
function referencePass(): number {
  let sum = 0;
  for (const [word] of REFERENCE.matchAll(/[^;=]+/g)) {
    for (let index = 0; index < word.length; index++) sum = (31 * sum + word.charCodeAt(index)) | 0;
  }
  return sum;
}

/**
 * Runs the reference and the readers once in each round.
 *
 * @param isEnough whether to end after this round, by the shortest times so far
 * @returns the time of the shortest run of each, in milliseconds
 */
async function measure(
  readers: readonly (() => unknown)[],
  maxRounds: number,
  isEnough: (times: readonly number[], round: number) => boolean,
): Promise<readonly number[]> {
  const all = [referencePass, ...readers];
  const shortest = all.map(() => Number.POSITIVE_INFINITY);
  for (let round = 1; round <= maxRounds; round++) {
    for (const [index, run] of all.entries()) {
      const startedAt = performance.now();
      await run();
      shortest[index] = Math.min(shortest[index] as number, performance.now() - startedAt);
    }
    if (isEnough(shortest, round)) break;
  }
  return shortest;
}

/**
 * Describes the fault of a reader that takes too long, or whose time is not linear. Returns
 * undefined if there is no fault.
 */
async function faultOf({ prepare, bytes }: Reader, make: WorstCase): Promise<string | undefined> {
  const readPart = prepare(make(bytes / GROWTH));
  const readWhole = readPart && prepare(make(bytes));
  if (!readWhole) return undefined;

  // Measures a part of the length first, because the whole length could take minutes if the time
  // is quadratic.
  const isWithin = (passes: number) => (times: readonly number[]) => passesOf(times, 1) <= passes;
  const first = await measure(
    [readPart],
    ROUNDS,
    (times, round) => isWithin(MAX_PASSES)(times) || (round >= 3 && !isWithin(HOPELESS)(times)),
  );
  if (!isWithin(MAX_PASSES)(first)) return `${passesOf(first, 1).toFixed(1)} passes for an eighth`;
  const brief = await measure([readWhole], FIRST_ROUNDS, isWithin(SHORT_PASSES));
  if (isWithin(SHORT_PASSES)(brief)) return undefined;

  const faultIn = (times: readonly number[]) => {
    const [passes, growth] = [passesOf(times, 2), (times[2] as number) / (times[1] as number)];
    if (passes > MAX_PASSES) return `${passes.toFixed(1)} passes`;
    const isTooSteep = passes > SHORT_PASSES && growth > MAX_GROWTH;
    return isTooSteep ? `${growth.toFixed(1)} times an eighth` : undefined;
  };
  const times = await measure(
    [readPart, readWhole],
    ROUNDS,
    (sofar, round) => round >= MIN_ROUNDS && faultIn(sofar) === undefined,
  );
  return faultIn(times);
}

/** Returns the time at an index as a multiple of the reference's time. */
function passesOf(times: readonly number[], index: number): number {
  return (times[index] as number) / (times[0] as number);
}

describe("in the worst case, reading one request takes at most 20 simple passes over 64 KiB, and time linear in its length", () => {
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
    300_000,
  );
});
