import { describe, expect, it } from "vitest";
import { TimeAxis } from "../../../cli/replay/time-axis.ts";

const START = Date.UTC(2026, 10, 22, 8, 0, 30);
const DAY = 86_400_000;

function count(axis: TimeAxis, times: readonly number[]) {
  const series = axis.series();
  for (const at of times) {
    const step = axis.stepOf(at);
    series[step] = (series[step] ?? 0) + 1;
  }
  return series;
}

describe("TimeAxis", () => {
  it("has no start and no steps without a time", () => {
    const { startMs, steps } = new TimeAxis();
    expect({ startMs, steps }).toEqual({ startMs: undefined, steps: 0 });
  });

  it("has one step for a single time", () => {
    const axis = new TimeAxis();
    expect([...count(axis, [START + 999]).subarray(0, axis.steps)]).toEqual([1]);
    expect({ startMs: axis.startMs, stepSeconds: axis.stepSeconds }).toEqual({
      startMs: START,
      stepSeconds: 1,
    });
  });

  it.each([
    [239, 1],
    [240, 5],
    [3600, 30],
    [86_400, 600],
    [30 * 86_400, 21_600],
    [400 * 86_400, 2 * 86_400],
    [100 * 365 * 86_400, 256 * 86_400],
  ])("covers %d seconds in steps of %d seconds, and loses no time", (seconds, stepSeconds) => {
    const axis = new TimeAxis();
    const times = Array.from(
      { length: 1000 },
      (_, at) => START + Math.round((at / 999) * seconds) * 1000,
    );
    const series = count(axis, times);
    expect(axis.stepSeconds).toBe(stepSeconds);
    expect(axis.steps).toBeLessThanOrEqual(240);
    expect(axis.steps).toBeGreaterThan(40);
    expect(series.reduce((sum, value) => sum + value)).toBe(1000);
    expect(series[axis.steps - 1]).toBeGreaterThan(0);
  });

  it("puts each time into the step that contains it, after any number of longer steps", () => {
    const axis = new TimeAxis();
    const times = Array.from({ length: 5000 }, (_, at) => START + at * 7919 * 17);
    const series = count(axis, times);
    const start = axis.startMs ?? 0;
    const expected = Array.from({ length: axis.steps }, () => 0);
    for (const at of times) {
      const step = Math.floor((at - start) / (axis.stepSeconds * 1000));
      expected[step] = (expected[step] ?? 0) + 1;
    }
    expect([...series.subarray(0, axis.steps)]).toEqual(expected);
    expect(start % (axis.stepSeconds * 1000)).toBe(0);
  });

  it("counts a time before the first one in the first step", () => {
    const axis = new TimeAxis();
    expect([axis.stepOf(START), axis.stepOf(START - DAY)]).toEqual([0, 0]);
  });

  it("lengthens the steps of all its series", () => {
    const axis = new TimeAxis();
    const [one, other] = [count(axis, [START]), count(axis, [START + 1000])];
    axis.stepOf(START + DAY);
    expect([one[0], other[0], other[1]]).toEqual([1, 1, 0]);
  });
});
