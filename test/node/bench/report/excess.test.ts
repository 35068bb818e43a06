import { describe, expect, it } from "vitest";
import { SUBJECTS, type Subject } from "../../../../bench/environment/subjects.ts";
import { excessOfWeir, type Results } from "../../../../bench/report/results.ts";

const subject = (name: string) => SUBJECTS.find((each) => each.name === name) as Subject;

function results(measured: Partial<Results>): Results {
  return {
    date: "2026-11-20T00:00:00Z",
    machine: { cpu: "", cores: 2, memoryGiB: 1, system: "" },
    versions: {},
    options: { quick: true, redisLatenciesMs: [20], connections: [16], rounds: 1 },
    workloads: [],
    isolates: [],
    ...measured,
  };
}

describe("Weir's excess", () => {
  it("counts the requests that Weir admitted over a limit, and ignores other limiters", () => {
    const isolates = [
      { subject: subject("weir"), admitted: [1000, 1002, 990], failed: 0 },
      { subject: subject("hono-rate-limiter"), admitted: [1500], failed: 0 },
    ];
    expect(excessOfWeir(results({ isolates }), 1000)).toBe(2);
  });

  it("allows one request more for each isolate with async", () => {
    const isolates = [{ subject: subject("weir-async"), admitted: [1008, 1009], failed: 0 }];
    expect(excessOfWeir(results({ isolates }), 1000)).toBe(1);
  });
});
