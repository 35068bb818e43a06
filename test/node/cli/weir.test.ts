import { describe, expect, test } from "vitest";
import { callWeir, REPOSITORY, runWeir } from "./run-weir.ts";

describe("the command line", () => {
  test.for([
    ["--help", ["--help"], ["Usage: npm run weir --", "check"]],
    ["no command", [], ["Usage: npm run weir --", "check"]],
    [
      "check --help",
      ["check", "--help"],
      ["check [options]", "--config <file>", "weir.config.ts", "--json"],
    ],
  ] as const)("prints its help for %s, and exits with 0", async ([, args, says]) => {
    const { code, stdout, stderr } = await callWeir(args, REPOSITORY);
    for (const words of says) expect(stdout).toContain(words);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
  });

  test("exits with 1 in a process of its own for an unknown command", async () => {
    const { code, stdout, stderr } = await runWeir(["chek"]);
    expect(stderr).toContain("unknown command 'chek'");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });

  test.for([
    ["an unknown command", ["chek"], "unknown command 'chek'\n(Did you mean check?)"],
    ["an unknown option", ["check", "--jsn"], "unknown option '--jsn'\n(Did you mean --json?)"],
    ["an option without its value", ["check", "--config"], "argument missing"],
    ["too many arguments", ["check", "rules.json"], "too many arguments"],
  ] as const)("exits with 1 for %s", async ([, args, message]) => {
    const { code, stdout, stderr } = await callWeir(args, REPOSITORY);
    expect(stderr).toContain(message);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });

  test.for([
    ["an unknown option", ["check", "--json", "--jsn"], "unknown option '--jsn'"],
    ["an unknown command", ["chek", "--json"], "unknown command 'chek'"],
    ["a wrong value", ["top", "--json", "--count", "0"], "Allowed: a whole number from 1 to 100."],
  ] as const)("prints a JSON document with --json for %s", async ([, args, message]) => {
    const { code, stdout } = await callWeir(args, REPOSITORY);
    expect(JSON.parse(stdout)).toEqual({ ok: false, error: expect.stringContaining(message) });
    expect(code).toBe(1);
  });
});
