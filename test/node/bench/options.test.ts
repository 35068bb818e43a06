import { describe, expect, it } from "vitest";
import { parseOptions } from "../../../bench/options.ts";
import { capturePrinted } from "../support/printed.ts";

const printed = capturePrinted();

const namesOf = (args: string[]) => parseOptions(args).subjects.map(({ name }) => name);

describe("npm run bench", () => {
  it("measures everything with Redis 20 ms away, and replaces the published figures", () => {
    const options = parseOptions([]);
    expect(options).toMatchObject({ quick: false, redisLatenciesMs: [20], isWhole: true });
    expect(options.subjects.length).toBeGreaterThan(8);
    expect(options.parts).toContain("zipf-1k");
    expect(options.parts).toContain("added-cpu");
  });

  it.each([
    ["--quick"],
    ["--only", "weir"],
    ["--workload", "hot"],
    ["--redis-latency", "0"],
    ["--connections", "4"],
    ["--origin-latency", "20"],
  ])("does not replace the published figures with %s", (...args) => {
    expect(parseOptions(args).isWhole).toBe(false);
  });

  it("always measures the baseline too", () => {
    expect(namesOf(["--only", "weir,upstash-ratelimit"])).toEqual([
      "baseline",
      "weir",
      "upstash-ratelimit",
    ]);
  });

  it("accepts several latencies and workloads", () => {
    const { redisLatenciesMs, parts } = parseOptions([
      "--redis-latency",
      "0,100",
      "--workload",
      "hot,added-cpu",
    ]);
    expect(redisLatenciesMs).toEqual([0, 100]);
    expect(parts).toEqual(["hot", "added-cpu"]);
  });

  it.each([
    [["--only", "wier"], 'There is no "wier". Allowed: baseline, weir,'],
    [["--workload", "hot,colder"], 'There is no "colder". Allowed: hot, zipf-1k,'],
    [["--redis-latency", "-5"], "whole numbers from 0 to 900"],
    [["--redis-latency", "20,20"], "each once"],
    [["--redis-latency", "901"], "whole numbers from 0 to 900"],
    [["--origin-latency", "20,30"], "whole numbers from 0 to 900"],
    [["--connections", "0"], "whole numbers from 1 to 1024"],
    [["--fast"], "unknown option '--fast'"],
    [["now"], "too many arguments"],
  ])("rejects %j and prints the allowed values", (args, message) => {
    expect(() => parseOptions(args)).toThrow(expect.objectContaining({ exitCode: 1 }));
    expect(printed()).toContain(message);
  });

  it("prints its help", () => {
    expect(() => parseOptions(["--help"])).toThrow(expect.objectContaining({ exitCode: 0 }));
    expect(printed()).toContain("--redis-latency");
  });
});
