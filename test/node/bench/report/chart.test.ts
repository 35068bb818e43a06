import { describe, expect, it } from "vitest";
import { SUBJECTS } from "../../../../bench/environment/subjects.ts";
import type { Measurement } from "../../../../bench/experiments/measure.ts";
import { WORKLOADS } from "../../../../bench/load/workloads.ts";
import { renderChart } from "../../../../bench/report/chart.ts";
import type { Results } from "../../../../bench/report/results.ts";

const ROUND: Measurement = {
  offered: 100,
  admitted: 100,
  over: 0,
  under: 0,
  failed: 0,
  latency: { p50: 12.34, p95: 20, p99: 30 },
  requestsPerSecond: 100,
  cpuPerRequest: 100,
  restCallsPerRequest: 1,
  commandsPerRequest: 3,
  objectCallsPerRequest: 0,
  rowsPerRequest: 0,
  dollarsPerMillion: 6.78,
};

const RESULTS: Results = {
  date: "2026-11-20T12:00:00.000Z",
  machine: { cpu: "some CPU", cores: 2, memoryGiB: 8, system: "linux" },
  versions: {},
  options: { quick: false, redisLatenciesMs: [20], connections: [16], rounds: 1 },
  workloads: WORKLOADS.map((workload) => ({
    workload,
    redisLatencyMs: 20,
    connections: 16,
    requests: 100,
    subjects: SUBJECTS.map((subject) => ({ subject, rounds: [ROUND] })),
  })),
  isolates: [],
};

describe("the chart", () => {
  const svg = renderChart(RESULTS) ?? "";

  it("names every subject, the latency of Redis, the machine and the date", () => {
    for (const { title } of SUBJECTS) {
      expect(svg).toContain(title.replaceAll("`", "").replaceAll('"', "&quot;"));
    }
    expect(svg).toContain("Redis 20 ms away, 2 cores of some CPU, 2026-11-20");
    expect(svg).toContain("12.34");
    expect(svg).toContain("6.78");
  });

  it("has a title, no styles and no scripts", () => {
    expect(svg).toMatch(/^<svg [^>]*>\n<title>[^<]+<\/title>/);
    expect(svg).not.toContain("<style");
    expect(svg).not.toContain("<script");
  });

  it("needs both workloads", () => {
    expect(renderChart({ ...RESULTS, workloads: RESULTS.workloads.slice(0, 1) })).toBeUndefined();
  });
});
