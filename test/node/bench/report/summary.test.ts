import { describe, expect, it } from "vitest";
import type { Measurement } from "../../../../bench/experiments/measure.ts";
import { median } from "../../../../bench/experiments/median.ts";
import { summarize } from "../../../../bench/report/summary.ts";

function measured(p50: number, rest: Partial<Measurement> = {}): Measurement {
  return {
    offered: 100,
    admitted: 100,
    over: 0,
    mostOver: 0,
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

  it("of an empty list does not exist", () => {
    expect(() => median([])).toThrow(RangeError);
  });
});

describe("a summary", () => {
  const baseline = [measured(1), measured(2), measured(4)];
  const rounds = [measured(2), measured(4), measured(8)];

  it("compares each round with the same round of the baseline", () => {
    const summary = summarize(rounds, baseline);
    expect(summary.ratio).toBe(2);
    expect(summary.latency.p50).toBe(4);
    expect(summary.added).toEqual({ p50: 2, p95: 4, p99: 6 });
  });

  it("sums the errors of all rounds", () => {
    const bad = [measured(1, { over: 1 }), measured(1, { over: 2, failed: 1 }), measured(1)];
    expect(summarize(bad, baseline)).toMatchObject({ over: 3, under: 0, failed: 1 });
  });

  it("has no CPU time if a round has no CPU time", () => {
    const withoutCpu = rounds.map((round) => ({ ...round, cpuPerRequest: undefined }));
    expect(summarize(withoutCpu, baseline).cpuPerRequest).toBeUndefined();
  });
});
