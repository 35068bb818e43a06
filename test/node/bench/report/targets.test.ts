import { describe, expect, it } from "vitest";
import { SUBJECTS, type Subject } from "../../../../bench/environment/subjects.ts";
import { type Results, weirsExcess } from "../../../../bench/report/results.ts";
import { targetsOf } from "../../../../bench/report/targets.ts";

const subject = (name: string) => SUBJECTS.find((each) => each.name === name) as Subject;

function results(found: Partial<Results>): Results {
  return {
    date: "2026-11-20T00:00:00Z",
    machine: { cpu: "", cores: 2, memoryGiB: 1, system: "" },
    versions: {},
    options: { quick: true, distances: [20], connections: 16, rounds: 1 },
    workloads: [],
    isolates: [],
    flood: [],
    ...found,
  };
}

function verdicts(found: Partial<Results>): Record<string, boolean | undefined> {
  return Object.fromEntries(targetsOf(results(found)).map(({ name, met }) => [name, met]));
}

describe("targets", () => {
  it("are neither met nor missed by what was not measured", () => {
    expect(new Set(Object.values(verdicts({})))).toEqual(new Set([undefined]));
  });

  it("are met at their bound", () => {
    const manyRules = { few: 100, many: 150, ratio: 1.5 };
    expect(verdicts({ manyRules })["200 rules: CPU by that of 2 rules"]).toBe(true);
  });

  it("take the worst of all runs on eight isolates", () => {
    const admitted = [1000, 989, 1001];
    const isolates = [{ subject: subject("weir"), admitted, failed: 0 }];
    expect(verdicts({ isolates })).toMatchObject({
      "8 isolates: most admitted of 1000": false,
      "8 isolates: fewest admitted of 1000": false,
    });
  });
});

describe("Weir's excess", () => {
  it("is what Weir admitted over a limit, whatever others did", () => {
    const isolates = [
      { subject: subject("weir"), admitted: [1000, 1002, 990], failed: 0 },
      { subject: subject("hono-rate-limiter"), admitted: [1500], failed: 0 },
    ];
    expect(weirsExcess(results({ isolates }), 1000)).toBe(2);
  });
});
