import { describe, expect, it } from "vitest";
import { SUBJECTS, type Subject } from "../../../../bench/environment/subjects.ts";
import { excessOfWeir, type Results } from "../../../../bench/report/results.ts";
import { targetsOf } from "../../../../bench/report/targets.ts";

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

function verdicts(measured: Partial<Results>): Record<string, boolean | undefined> {
  return Object.fromEntries(targetsOf(results(measured)).map(({ name, met }) => [name, met]));
}

describe("targets", () => {
  it("are undefined when the run did not measure them", () => {
    expect(new Set(Object.values(verdicts({})))).toEqual(new Set([undefined]));
  });

  it("are met by a figure equal to the bound", () => {
    const isolates = [{ subject: subject("weir"), admitted: [1000, 990], failed: 0 }];
    expect(verdicts({ isolates })).toMatchObject({
      "8 isolates: most admitted of 1000": true,
      "8 isolates: fewest admitted of 1000": true,
    });
  });

  it("use the worst run on eight isolates", () => {
    const admitted = [1000, 989, 1001];
    const isolates = [{ subject: subject("weir"), admitted, failed: 0 }];
    expect(verdicts({ isolates })).toMatchObject({
      "8 isolates: most admitted of 1000": false,
      "8 isolates: fewest admitted of 1000": false,
    });
  });
});

describe("Weir's excess", () => {
  it("counts the requests that Weir admitted over a limit, and ignores other limiters", () => {
    const isolates = [
      { subject: subject("weir"), admitted: [1000, 1002, 990], failed: 0 },
      { subject: subject("hono-rate-limiter"), admitted: [1500], failed: 0 },
    ];
    expect(excessOfWeir(results({ isolates }), 1000)).toBe(2);
  });
});
