import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callWeir, temporaryFolder } from "../cli/run-weir.ts";

const recordOf = (index: number) => ({
  time: new Date(Date.UTC(2026, 10, 22) + index * 100).toISOString(),
  ...{ client_ip: `192.0.2.${index % 3}`, method: "GET", url: "/a", key: "k" },
});
const RECORDS = Array.from({ length: 60 }, (_, index) => JSON.stringify(recordOf(index)));
const accessLine = (second: number) =>
  `192.0.2.${second % 3} - - [22/Nov/2026:10:00:${String(second).padStart(2, "0")} +0000] "GET /${Math.sin(second)} HTTP/1.1" 200 5`;
const LINES = Array.from({ length: 60 }, (_, second) => accessLine(second)).join("\n");

let folder: Awaited<ReturnType<typeof temporaryFolder>>;

beforeAll(async () => {
  folder = await temporaryFolder();
  const rule = { name: "per-ip", limit: 5, window: "1m" };
  // A bound would be refused while an enforced rule is left out.
  const keyed = { ...rule, name: "per-key", key: "header:x-api-key", mode: "shadow" };
  await folder.write("weir.config.json", JSON.stringify({ rules: [rule, keyed] }));
  await folder.write("other.config.json", JSON.stringify({ rules: [{ ...rule, limit: 9 }] }));
  await folder.write("app.jsonl", RECORDS.join("\n"));
  await folder.write("access.log", LINES);
});

afterAll(() => folder[Symbol.asyncDispose]());

const replay = (...args: string[]) =>
  callWeir(["replay", "--config", "weir.config.json", "--quiet", ...args], folder.path);

describe("a log without statuses", () => {
  it("has an unknown number of requests that had succeeded in the text", async () => {
    const { stdout, code } = await replay("app.jsonl", "--against", "other.config.json");
    expect(code).toBe(0);
    expect(stdout).toContain("unknown");
    expect(stdout).not.toMatch(/Had succeeded: \d|\d of them had succeeded/);
    expect(stdout).not.toMatch(/undefined|NaN/);
  });

  it("has no number of requests that had succeeded in JSON", async () => {
    const { stdout } = await replay("app.jsonl", "--against", "other.config.json", "--json");
    expect(JSON.parse(stdout).total.denied).toBeGreaterThan(0);
    expect(stdout).not.toMatch(/deniedSucceeded/i);
    expect(stdout).toContain("status-not-logged");
  });
});

describe("a rule whose key is not logged", () => {
  it.each(["app.jsonl", "access.log"])("has a cure: %s", async (log) => {
    const { stdout } = await replay(log);
    expect(stdout.replace(/\s+/g, " ")).toContain(
      "To replay it, add --map header:x-api-key=FIELD (for JSON lines) or --missing-as-absent.",
    );
  });
});

describe("a log that breaks off", () => {
  const bounds = ["--max-denied", "1000"];

  it.each<[string, number, string[], boolean]>([
    ["0 without a bound", 0, [], true],
    ["2 with a bound that the rest may exceed", 2, bounds, true],
    ["1 with a bound that is exceeded already", 1, ["--max-denied", "0"], true],
    ["0 with a bound if it is whole", 0, bounds, false],
  ])("ends with %s", async (_, expected, args, isCut) => {
    const whole = gzipSync(LINES);
    await writeFile(join(folder.path, "cut.gz"), isCut ? whole.subarray(0, -40) : whole);
    const { code, stdout, stderr } = await replay("cut.gz", "--json", ...args);
    expect(code).toBe(expected);
    expect(JSON.parse(stdout).log.isIncomplete).toBe(isCut || undefined);
    expect(stderr.includes("need the whole log")).toBe(expected === 2);
  });
});
