import fc from "fast-check";
import { expect, it } from "vitest";
import { cpuTimeMs, createTarget, inTime } from "../../../fuzz/property.ts";

const RUN = { cases: 1000, seed: 1 };

function smallerThan(limit: number) {
  return createTarget("small", "is small", fc.nat(999), (value) => {
    if (value >= limit) throw new Error(`${value} is too much`);
  });
}

function work(ms: number): void {
  const end = cpuTimeMs() + ms;
  while (cpuTimeMs() < end);
}

it("reports the smallest case that fails, and its error", async () => {
  const { finding } = await smallerThan(10).check(RUN);
  expect(finding).toEqual({ smallest: "10", what: "10 is too much" });
});

it("reports the number of cases if the property holds", async () => {
  expect(await smallerThan(1000).check(RUN)).toEqual({ cases: 1000 });
});

it("fails for an action that is slow in every run", () => {
  expect(() => inTime(() => work(60))).toThrow(/^takes 6\d ms$/);
});

it("accepts an action that is slow in one run", () => {
  const times = [60, 0];
  const act = () => {
    work(times.shift() ?? 0);
    return "done";
  };
  expect(inTime(act)).toBe("done");
});
