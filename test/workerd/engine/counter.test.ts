import { describe, expect, it } from "vitest";
import { storedKey, windowAt } from "../../../src/engine/counter.ts";
import { counter } from "../../suite/counters.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

describe("a window", () => {
  it.each([
    ["the 60 s window of 1700000100", 1_700_000_100_000, MINUTE, 0, 28_333_335, 1_700_000_160_000],
    [
      "the last millisecond of that window",
      1_700_000_159_999,
      MINUTE,
      0,
      28_333_335,
      1_700_000_160_000,
    ],
    ["the first of the next window", 1_700_000_160_000, MINUTE, 0, 28_333_336, 1_700_000_220_000],
    ["the 60 s window of 1678900825", 1_678_900_825_000, MINUTE, 0, 27_981_680, 1_678_900_860_000],
    ["a 10 s window", 1_700_000_105_000, 10_000, 0, 170_000_010, 1_700_000_110_000],
    ["a time before the offset", 999, 1000, 1000, -1, 1000],
    ["a time before the epoch", -1, 1000, 0, -1, 0],
    [
      "a day that begins at 17:00 UTC",
      Date.UTC(2024, 0, 2, 16, 59, 59, 999),
      24 * HOUR,
      17 * HOUR,
      19_723,
      Date.UTC(2024, 0, 2, 17),
    ],
  ])("is computed for %s", (_, now, windowMs, offsetMs, index, endsAt) => {
    expect(windowAt(now, { windowMs, offsetMs })).toEqual({ index, endsAt });
  });

  it("is the last part of a stored key", () => {
    const alice = counter({ key: "weir:search:1m:alice" });
    expect(storedKey(alice, 1_700_000_100_000)).toBe("weir:search:1m:alice:28333335");
  });
});
