import { describe, expect, it } from "vitest";
import { parseOptions } from "../../../../bench/simulation/options.ts";
import { allScenarios } from "../../../../bench/simulation/scenarios/all.ts";
import { capturePrinted } from "../../support/printed.ts";

const printed = capturePrinted();

describe("npm run simulate", () => {
  it("simulates everything and replaces the published figures", () => {
    const options = parseOptions([]);
    expect(options).toMatchObject({ seed: 1, isWhole: true });
    expect(options.groups).toContain("isolates");
  });

  it.each([
    ["--seed", "2"],
    ["--only", "eight"],
  ])("does not replace the published figures with %s %s", (...args) => {
    expect(parseOptions(args).isWhole).toBe(false);
  });

  it.each([
    [["--seed", "-1"], "whole numbers from 0"],
    [["--seed", "1.5"], "whole numbers from 0"],
    [["--only", "isolate"], 'There is no "isolate". Allowed: isolates,'],
    [["--fast"], "unknown option '--fast'"],
    [["now"], "too many arguments"],
  ])("rejects %j and prints the allowed values", (args, message) => {
    expect(() => parseOptions(args)).toThrow(expect.objectContaining({ exitCode: 1 }));
    expect(printed()).toContain(message);
  });

  it("prints its help", () => {
    expect(() => parseOptions(["--help"])).toThrow(expect.objectContaining({ exitCode: 0 }));
    expect(printed()).toContain("--only");
  });

  it("gives each scenario a unique name, because threads look up scenarios by name", () => {
    const names = allScenarios().map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });
});
