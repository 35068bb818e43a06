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
/**
 * The length of the first measurement, as a part of the greatest length. The whole length could take minutes if the
 * time is quadratic.
 */
const PART = 8;
/**
 * The maximum number of rounds. In each round, the reference and the reader run one after the other,
 * so that a busy machine delays both. Only their shortest runs are compared, because other programs
 * delay some runs, and compilation delays the first runs.
 */
const ROUNDS = 150;
const REFERENCE = "name=text; ".repeat(HEADER_BYTES).slice(0, HEADER_BYTES);

/** Reads a header field of the greatest length in linear time, with one short text for each word. */
function referencePass(): number {
  let sum = 0;
  for (const [word] of REFERENCE.matchAll(/[^;=]+/g)) {
    for (let index = 0; index < word.length; index++) sum = (31 * sum + word.charCodeAt(index)) | 0;
  }
  return sum;
}

/** Returns the time of one pass of the reference. */
function timeOfPass(): number {
  const startedAt = performance.now();
  referencePass();
  return performance.now() - startedAt;
}

/** The shortest of many passes. Nearly all readers are fast enough even in comparison with it. */
const SHORTEST_PASS = Math.min(...Array.from({ length: 50 }, timeOfPass));

/**
 * Runs a reader and the reference once in each round, until the reader is fast enough or hopeless.
 *
 * @returns the time of the reader's shortest run, in passes
 */
async function passesOf(read: () => unknown): Promise<number> {
  let [pass, reading] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 1; round <= ROUNDS; round++) {
    const startedAt = performance.now();
    await read();
    reading = Math.min(reading, performance.now() - startedAt);
    if (reading <= MAX_PASSES * SHORTEST_PASS) return reading / SHORTEST_PASS;
    pass = Math.min(pass, timeOfPass());
    if (reading <= MAX_PASSES * pass || (round >= 3 && reading > HOPELESS * pass)) break;
  }
  return reading / pass;
}

/** Describes the fault of a reader that takes too long. Returns undefined if there is no fault. */
async function faultOf({ prepare, bytes }: Reader, make: WorstCase): Promise<string | undefined> {
  for (const length of [bytes / PART, bytes]) {
    const read = prepare(make(length));
    if (!read) return undefined;
    const passes = await passesOf(read);
    if (passes > MAX_PASSES) return `${passes.toFixed(1)} passes for ${length} bytes`;
  }
  return undefined;
}

// Quadratic time would take thousands of passes.
describe("in the worst case, reading one request takes at most 20 simple passes over 64 KiB", () => {
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
