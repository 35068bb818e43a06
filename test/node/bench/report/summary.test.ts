import { describe, expect, it } from "vitest";
import type { Measurement } from "../../../../bench/experiments/measure.ts";
import { median } from "../../../../bench/experiments/median.ts";
import { p50Ratio, summarize } from "../../../../bench/report/summary.ts";

function measured(p50: number, rest: Partial<Measurement> = {}): Measurement {
  return {
    offered: 100,
    admitted: 100,
    over: 0,
    under: 0,
    failed: 0,
    latency: { p50, p95: 2 * p50, p99: 3 * p50 },
    requestsPerSecond: 1000 / p50,
    cpuPerRequest: 100 * p50,
    restCallsPerRequest: 1,
    commandsPerRequest: 3,
    objectCallsPerRequest: 0,
    rowsPerRequest: 0,
    dollarsPerMillion: 6,
    ...rest,
  };
}

describe("a median", () => {
  it.each([
    [[3, 1, 2], 2],
    [[1, 10, 2, 3], 2.5],
    [[5], 5],
  ])("of %j is %d", (values, middle) => {
    expect(median(values)).toBe(middle);
  });

  it("of nothing there is none", () => {
    expect(() => median([])).toThrow(RangeError);
  });
});

describe("a summary", () => {
  const floor = [measured(1), measured(2), measured(4)];
  const rounds = [measured(2), measured(4), measured(8)];

  it("compares with the floor of the same round, however much the machine drifts", () => {
    const summary = summarize(rounds, floor);
    expect(summary.ratio).toBe(2);
    expect(summary.latency.p50).toBe(4);
    expect(summary.added).toEqual({ p50: 2, p95: 4, p99: 6 });
  });

  it("adds up what must not happen even once", () => {
    const bad = [measured(1, { over: 1 }), measured(1, { over: 2, failed: 1 }), measured(1)];
    expect(summarize(bad, floor)).toMatchObject({ over: 3, under: 0, failed: 1 });
  });

  it("has no CPU time where it could not be read", () => {
    const blind = rounds.map((round) => ({ ...round, cpuPerRequest: undefined }));
    expect(summarize(blind, floor).cpuPerRequest).toBeUndefined();
  });

  it("compares two subjects round by round", () => {
    expect(p50Ratio([measured(3), measured(6)], [measured(2), measured(4)])).toBe(1.5);
  });
});
