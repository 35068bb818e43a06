import { describe, expect, it } from "vitest";
import { zipf } from "../../../../bench/load/zipf.ts";

function timesDrawn(ranks: number[]): Map<number, number> {
  const times = new Map<number, number>();
  for (const rank of ranks) times.set(rank, (times.get(rank) ?? 0) + 1);
  return times;
}

describe("zipf", () => {
  it("draws every key, and no other", () => {
    const ranks = zipf({ keys: 10, exponent: 1.1, count: 2000, seed: 1 });
    expect(ranks).toHaveLength(2000);
    expect(new Set(ranks)).toEqual(new Set([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
  });

  it("draws the same keys for the same seed, and other keys for another seed", () => {
    const draw = (seed: number) => zipf({ keys: 1000, exponent: 1.1, count: 50, seed });
    expect(draw(7)).toEqual(draw(7));
    expect(draw(7)).not.toEqual(draw(8));
  });

  it.each([1, 1.1, 2])("draws the key of rank r in proportion to r ** -%d", (exponent) => {
    const count = 100_000;
    const times = timesDrawn(zipf({ keys: 100, exponent, count, seed: 1 }));
    const weights = Array.from({ length: 100 }, (_, rank) => (rank + 1) ** -exponent);
    const sum = weights.reduce((total, weight) => total + weight);
    for (const rank of [0, 1, 2, 9]) {
      const expected = (count * (weights[rank] as number)) / sum;
      expect(times.get(rank)).toBeGreaterThan(0.9 * expected);
      expect(times.get(rank)).toBeLessThan(1.1 * expected);
    }
  });

  it("draws all keys equally often with exponent 0", () => {
    const times = timesDrawn(zipf({ keys: 4, exponent: 0, count: 4000, seed: 1 }));
    for (const rank of [0, 1, 2, 3]) expect(times.get(rank)).toBeGreaterThan(900);
  });
});
