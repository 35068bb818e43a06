import { describe, expect, it, vi } from "vitest";
import { READERS, type Reader } from "./readers.ts";
import { WORST_CASES, type WorstCase } from "./worst-cases.ts";

vi.mock("cloudflare:workers", () => ({ waitUntil() {} }));

/** What a single request may cost at the longest that Cloudflare lets through, in milliseconds. */
const LIMIT_MS = 5;
/** A time below tells nothing of how it grows. */
const SHORT_MS = 2.5;
/** Four times the length takes four times as long, and sixteen times if the time is quadratic. */
const GROWTH = 4;
const MOST_GROWTH = 9;
/** The shortest of so many times counts: other programs take the rest, and the compiler the first. */
const TRIES = 150;

/** Milliseconds that a text takes to be read; undefined when no request can carry it. */
async function timed({ prepare }: Reader, text: string, enoughMs: number) {
  const read = prepare(text);
  if (!read) return undefined;
  let least = Number.POSITIVE_INFINITY;
  for (let tries = 0; tries < TRIES && least > enoughMs; tries++) {
    const startedAt = performance.now();
    await read();
    least = Math.min(least, performance.now() - startedAt);
  }
  return least;
}

/** What is wrong with the time that a text takes; undefined when nothing is. */
async function fault(reader: Reader, make: WorstCase): Promise<string | undefined> {
  // A quarter first: quadratic time would make the whole take minutes.
  const quarter = await timed(reader, make(reader.bytes / GROWTH), LIMIT_MS);
  if (quarter === undefined) return undefined;
  if (quarter > LIMIT_MS) return `${quarter.toFixed(1)} ms for a quarter`;
  const whole = (await timed(reader, make(reader.bytes), SHORT_MS)) ?? 0;
  if (whole > LIMIT_MS) return `${whole.toFixed(1)} ms`;
  if (whole <= SHORT_MS) return undefined;
  const least = (await timed(reader, make(reader.bytes / GROWTH), 0)) ?? 0;
  return whole / least > MOST_GROWTH ? `${(whole / least).toFixed(1)} times a quarter` : undefined;
}

describe("one request stalls no isolate: in the worst case below 5 ms, and linear in its length", () => {
  it.each(READERS.map((reader) => [reader.name, reader] as const))(
    "%s",
    async (_, reader) => {
      const faults: Record<string, string> = {};
      for (const [name, make] of WORST_CASES) {
        const found = await fault(reader, make);
        if (found) faults[name] = found;
      }
      expect(faults).toEqual({});
    },
    120_000,
  );
});
