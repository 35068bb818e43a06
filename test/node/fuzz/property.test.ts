import fc from "fast-check";
import { expect, it } from "vitest";
import { inTime, property, workedMs } from "../../../fuzz/property.ts";

const EFFORT = { cases: 1000, seed: 1 };

function smallerThan(limit: number) {
  return property("small", "is small", fc.nat(999), (value) => {
    if (value >= limit) throw new Error(`${value} is too much`);
  });
}

function work(ms: number): void {
  const end = workedMs() + ms;
  while (workedMs() < end);
}

it("tells the smallest case that fails, and what is wrong with it", async () => {
  const { finding } = await smallerThan(10).check(EFFORT);
  expect(finding).toEqual({ smallest: "10", what: "10 is too much" });
});

it("finds nothing where everything holds, and says how much was tried", async () => {
  expect(await smallerThan(1000).check(EFFORT)).toEqual({ cases: 1000 });
});

it("takes what is slow again and again for a finding", () => {
  expect(() => inTime(() => work(60))).toThrow(/^takes 6\d ms$/);
});

it("forgives what was slow once", () => {
  const times = [60, 0];
  const act = () => {
    work(times.shift() ?? 0);
    return "done";
  };
  expect(inTime(act)).toBe("done");
});
