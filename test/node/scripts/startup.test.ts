import { describe, expect, it, vi } from "vitest";
import { activeMs, leastOf } from "../../../scripts/startup.ts";

const nodes = ["(root)", "(program)", "(idle)", "fetch"].map((functionName, id) => ({
  id,
  callFrame: { functionName },
}));

describe("the active time of a profile", () => {
  it("is all time except the idle time, in milliseconds", () => {
    const samples = [1, 2, 3, 2];
    const timeDeltas = [1_500, 4_000, 250, 9_000];
    expect(activeMs({ nodes, samples, timeDeltas })).toBe(1.75);
  });

  it("is all time if there was no idle time", () => {
    const busy = nodes.filter(({ callFrame }) => callFrame.functionName !== "(idle)");
    expect(activeMs({ nodes: busy, samples: [1, 3], timeDeltas: [1_000, 1_000] })).toBe(2);
  });
});

describe("the least of several measurements", () => {
  it.each([
    {
      name: "stops at a measurement that is small enough",
      times: [40, 30, 20],
      least: 30,
      measured: 2,
    },
    {
      name: "stops after the first one if that is small enough",
      times: [20, 10],
      least: 20,
      measured: 1,
    },
    {
      name: "stops after the last attempt if none is small enough",
      times: [50, 40, 45, 10],
      least: 40,
      measured: 3,
    },
  ])("$name", ({ times, least, measured }) => {
    const measure = vi.fn(() => times.shift() as number);
    expect(leastOf(3, 30, measure)).toBe(least);
    expect(measure).toHaveBeenCalledTimes(measured);
  });
});
