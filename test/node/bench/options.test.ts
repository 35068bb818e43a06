import { describe, expect, it } from "vitest";
import { parseOptions } from "../../../bench/options.ts";
import { capturePrinted } from "../support/printed.ts";

const printed = capturePrinted();

const namesOf = (args: string[]) => parseOptions(args).subjects.map(({ name }) => name);

describe("npm run bench", () => {
  it("measures everything, 20 ms from Redis, and may then replace what was published", () => {
    const options = parseOptions([]);
    expect(options).toMatchObject({ quick: false, distances: [20], isWhole: true });
    expect(options.subjects.length).toBeGreaterThan(8);
    expect(options.parts).toContain("zipf-1k");
    expect(options.parts).toContain("flood");
  });

  it.each([["--quick"], ["--only", "weir"], ["--workload", "hot"], ["--distance", "0"]])(
    "replaces nothing with %s",
    (...args) => {
      expect(parseOptions(args).isWhole).toBe(false);
    },
  );

  it("always has the floor beside the subjects that are asked for", () => {
    expect(namesOf(["--only", "weir,upstash-ratelimit"])).toEqual([
      "floor",
      "weir",
      "upstash-ratelimit",
    ]);
  });

  it("takes several distances and workloads", () => {
    const { distances, parts } = parseOptions(["--distance", "0,100", "--workload", "hot,cpu"]);
    expect(distances).toEqual([0, 100]);
    expect(parts).toEqual(["hot", "cpu"]);
  });

  it.each([
    [["--only", "wier"], 'There is no "wier". Allowed: floor, weir,'],
    [["--workload", "hot,cold"], 'There is no "cold". Allowed: hot, zipf-1k,'],
    [["--distance", "-5"], "whole numbers from 0 to 900"],
    [["--distance", "20,20"], "each once"],
    [["--distance", "901"], "whole numbers from 0 to 900"],
    [["--fast"], "unknown option '--fast'"],
    [["now"], "too many arguments"],
  ])("refuses %j and says what is allowed", (args, message) => {
    expect(() => parseOptions(args)).toThrow(expect.objectContaining({ exitCode: 1 }));
    expect(printed()).toContain(message);
  });

  it("explains itself", () => {
    expect(() => parseOptions(["--help"])).toThrow(expect.objectContaining({ exitCode: 0 }));
    expect(printed()).toContain("--distance");
  });
});
