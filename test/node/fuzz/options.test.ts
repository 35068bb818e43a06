import { describe, expect, it } from "vitest";
import { parseOptions } from "../../../fuzz/options.ts";
import type { Target } from "../../../fuzz/target.ts";
import { capturePrinted } from "../support/printed.ts";

const TARGETS: Target[] = ["config", "paths"].map((name) => ({
  name,
  about: `the property of ${name}`,
  check: async () => ({ cases: 0 }),
}));

const printed = capturePrinted();

describe("npm run fuzz", () => {
  it("runs a million cases of each target, with a random seed", () => {
    const [one, other] = [parseOptions([], TARGETS), parseOptions([], TARGETS)];
    expect(one).toMatchObject({ targets: TARGETS, cases: 1_000_000 });
    expect(one.seed).not.toBe(other.seed);
  });

  it("runs the given targets, cases and seed", () => {
    const args = ["--target", "paths", "--cases", "10", "--seed", "0"];
    expect(parseOptions(args, TARGETS)).toEqual({ targets: [TARGETS[1]], cases: 10, seed: 0 });
  });

  it("runs every target if the target is all", () => {
    expect(parseOptions(["--target", "all"], TARGETS).targets).toEqual(TARGETS);
  });

  it.each([
    [["--target", "path"], 'There is no target "path". Allowed: all, config, paths.'],
    [["--cases", "0"], "Must be a whole number from 1 to 2147483647."],
    [["--cases", "1e3"], "Must be a whole number from 1"],
    [["--seed", "-1"], "Must be a whole number from 0"],
    [["--fast"], "unknown option '--fast'"],
    [["now"], "too many arguments"],
  ])("refuses %j and prints the allowed values", (args, message) => {
    expect(() => parseOptions(args, TARGETS)).toThrow(expect.objectContaining({ exitCode: 1 }));
    expect(printed()).toContain(message);
  });

  it("describes each target in its help", () => {
    expect(() => parseOptions(["--help"], TARGETS)).toThrow(
      expect.objectContaining({ exitCode: 0 }),
    );
    expect(printed()).toContain("paths   the property of paths");
  });
});
