import { describe, expect, it } from "vitest";
import { dollarsPerMillion, NO_USAGE } from "../../../../bench/experiments/dollars.ts";

describe("dollars for a million requests", () => {
  it("are none without usage", () => {
    expect(dollarsPerMillion(NO_USAGE, 10)).toBe(0);
  });

  it("are two for each command that a request takes, as docs/cost.md has it", () => {
    expect(dollarsPerMillion({ ...NO_USAGE, commands: 3000 }, 1000)).toBeCloseTo(6);
    expect(dollarsPerMillion({ ...NO_USAGE, commands: 100 }, 1000)).toBeCloseTo(0.2);
  });

  it("are 1.15 for a call of an object that writes a row, as docs/cost.md has it", () => {
    const usage = { ...NO_USAGE, objectCalls: 500, rowsWritten: 500 };
    expect(dollarsPerMillion(usage, 500)).toBeCloseTo(1.15);
  });

  it("are none for calls over REST, which are not billed but for their commands", () => {
    expect(dollarsPerMillion({ ...NO_USAGE, restCalls: 1000 }, 10)).toBe(0);
  });
});
