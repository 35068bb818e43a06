import { describe, expect, it } from "vitest";
import { dollarsPerMillion, NO_USAGE } from "../../../../bench/experiments/dollars.ts";

describe("the price of a million requests", () => {
  it("is 0 without usage", () => {
    expect(dollarsPerMillion(NO_USAGE, 10)).toBe(0);
  });

  it("is $2 for each Redis command of a request, as in docs/cost.md", () => {
    expect(dollarsPerMillion({ ...NO_USAGE, commands: 3000 }, 1000)).toBeCloseTo(6);
    expect(dollarsPerMillion({ ...NO_USAGE, commands: 100 }, 1000)).toBeCloseTo(0.2);
  });

  it("is $1.15 for one object call that writes one row, as in docs/cost.md", () => {
    const usage = { ...NO_USAGE, objectCalls: 500, rowsWritten: 500 };
    expect(dollarsPerMillion(usage, 500)).toBeCloseTo(1.15);
  });

  it("does not include REST calls, because Upstash bills only commands", () => {
    expect(dollarsPerMillion({ ...NO_USAGE, restCalls: 1000 }, 10)).toBe(0);
  });
});
