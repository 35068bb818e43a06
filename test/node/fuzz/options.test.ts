import { describe, expect, it } from "vitest";
import { parseOptions } from "../../../fuzz/options.ts";
import type { Target } from "../../../fuzz/target.ts";
import { capturePrinted } from "../support/printed.ts";

const TARGETS: Target[] = ["config", "paths"].map((name) => ({
  name,
  about: `what holds of ${name}`,
  check: async () => ({ cases: 0 }),
}));

const printed = capturePrinted();

describe("npm run fuzz", () => {
  it("tries a million cases of each target, other ones each time", () => {
    const [one, other] = [parseOptions([], TARGETS), parseOptions([], TARGETS)];
    expect(one).toMatchObject({ targets: TARGETS, cases: 1_000_000 });
    expect(one.seed).not.toBe(other.seed);
  });

  it("tries what it is told to", () => {
    const args = ["--target", "paths", "--cases", "10", "--seed", "0"];
    expect(parseOptions(args, TARGETS)).toEqual({ targets: [TARGETS[1]], cases: 10, seed: 0 });
  });

  it("takes all for every target, as its help calls the default", () => {
    expect(parseOptions(["--target", "all"], TARGETS).targets).toEqual(TARGETS);
  });

  it.each([
    [["--target", "path"], 'There is no "path". Allowed: all, config, paths.'],
    [["--cases", "0"], "A whole number from 1 to 2147483647 is wanted."],
    [["--cases", "1e3"], "A whole number from 1"],
    [["--seed", "-1"], "A whole number from 0"],
    [["--fast"], "unknown option '--fast'"],
    [["now"], "too many arguments"],
  ])("refuses %j and says what is allowed", (args, message) => {
    expect(() => parseOptions(args, TARGETS)).toThrow(expect.objectContaining({ exitCode: 1 }));
    expect(printed()).toContain(message);
  });

  it("explains itself, target by target", () => {
    expect(() => parseOptions(["--help"], TARGETS)).toThrow(
      expect.objectContaining({ exitCode: 0 }),
    );
    expect(printed()).toContain("paths   what holds of paths");
  });
});
