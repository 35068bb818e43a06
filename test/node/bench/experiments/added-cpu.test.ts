import { describe, expect, it } from "vitest";
import { summarizeRounds } from "../../../../bench/experiments/added-cpu.ts";
import {
  pairedDifferences,
  rotate,
  spreadOf,
} from "../../../../bench/experiments/paired-rounds.ts";

describe("paired rounds", () => {
  it("are subtracted round by round, before the median", () => {
    // In the second round, the machine runs at half speed. The medians of the two lists, 135 and
    // 120, differ by only 15, but the median of the differences is 20.
    expect(pairedDifferences([120, 240, 135], [100, 200, 120])).toEqual([20, 40, 15]);
  });

  it("must be equal in number", () => {
    expect(() => pairedDifferences([1, 2], [1])).toThrow(RangeError);
  });

  it("are summarized by median, smallest and largest value", () => {
    expect(spreadOf([3, -1, 10, 4])).toEqual({ median: 3.5, least: -1, most: 10 });
  });

  it("start with a different subject each time", () => {
    const orders = [0, 1, 2, 3].map((number) => rotate(["a", "b", "c"], number).join(""));
    expect(orders).toEqual(["abc", "bca", "cab", "abc"]);
  });
});

describe("the CPU time that Weir adds", () => {
  it("is the difference to each baseline in the same round", () => {
    const rounds = [
      { forward: 200, fields: 230, weir: 250 },
      { forward: 400, fields: 440, weir: 470 },
      { forward: 210, fields: 240, weir: 268 },
    ];
    expect(summarizeRounds(rounds)).toMatchObject({
      rounds,
      weir: { median: 268, least: 250, most: 470 },
      overForward: { median: 58, least: 50, most: 70 },
      overFields: { median: 28, least: 20, most: 30 },
    });
  });
});
