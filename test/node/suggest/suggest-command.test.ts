import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Suggestion } from "../../../cli/suggest/suggestion.ts";
import { defineConfig } from "../../../src/config/index.ts";
import { callWeir, runWeir, temporaryFolder } from "../cli/run-weir.ts";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => folder[Symbol.asyncDispose]());

/** A line in combined format, some seconds after the start of an hour. */
function line(second: number, ip: string, request: string, status = 200, agent = "curl/8") {
  const time = new Date(Date.UTC(2026, 10, 22, 8, 0, second)).toISOString().slice(11, 19);
  return `${ip} - - [22/Nov/2026:${time} +0000] "${request} HTTP/1.1" ${status} 1 "-" "${agent}"`;
}

/** 300 clients with 1 to 3 requests in a minute, and one with 40 of which 30 fail. */
const LOG = [
  ...Array.from({ length: 300 }, (_, client) =>
    Array.from({ length: (client % 3) + 1 }, (_, second) =>
      line(second, `192.0.2.${client % 256}`.replace("192", `${1 + (client >> 8)}`), "POST /login"),
    ),
  ).flat(),
  ...Array.from({ length: 40 }, (_, at) =>
    line(3 + at, "203.0.113.9", "POST /login?user=a", at < 30 ? 401 : 200, "Googlebot/2.1"),
  ),
  line(55, "203.0.113.9", "GET /"),
].join("\n");

async function suggest(log: string, ...args: string[]) {
  await folder.write("access.log", log);
  return await callWeir(["suggest", "access.log", ...args], folder.path);
}

/** Parses a document. Throws unless the command has succeeded. */
async function suggestion(log: string, ...args: string[]): Promise<Suggestion> {
  const { stdout, stderr } = await suggest(log, "--json", ...args);
  expect(stderr).toBe("");
  return JSON.parse(stdout);
}

describe("weir suggest", () => {
  it("prints the numbers, the loudest clients and a rule that weir check accepts", async () => {
    const args = ["--match", "POST /login", "--window", "1m"];
    const { code, stdout } = await suggest(LOG, ...args);
    expect(code).toBe(0);
    await expect(stdout).toMatchFileSnapshot("suggestion.txt");
    expect(Math.max(...stdout.split("\n").map(({ length }) => length))).toBeLessThanOrEqual(120);
    const rule = stdout.slice(stdout.indexOf("\n{\n") + 1);
    await folder.write("weir.config.ts", `export default { store: "memory", rules: [${rule}] };`);
    const check = await callWeir(["check", "--json"], folder.path);
    expect(JSON.parse(check.stdout)).toMatchObject({
      faults: [],
      rules: [{ name: "login", mode: "shadow", windows: [{ limit: 3, windowMs: 60_000 }] }],
    });
  });

  it("prints one JSON document", async () => {
    const { windows, loudest, ...report } = await suggestion(LOG, "--name", "all");
    expect(report).toMatchObject({
      ...{ version: 1, name: "all", match: "every request", key: "ip" },
      ...{ requests: 641, clients: 301, requestsLeftOut: 0 },
      log: { files: ["access.log"], formats: ["combined"], requests: 641, broken: 0 },
    });
    expect(windows.map(({ window, limits }) => [window, limits.at(-1)?.limit])).toEqual([
      ["1m", 41],
      ["1h", 41],
    ]);
    expect(loudest[0]).toMatchObject({
      ...{ client: "203.0.113.9", requests: 41, busiest: 41, succeeded: 11 },
      ...{ busiestStart: "2026-11-22T08:00:00.000Z" },
    });
    expect(loudest).toHaveLength(10);
    expect(report.notes.map(({ code }) => code)).toEqual([...["few-clients", "short-log"]]);
  });

  it("reads the standard input, and says what it could not read", async () => {
    const input = `${LOG}\nno line of a log\n`;
    const { code, stdout } = await runWeir(["suggest", "-", "--json"], folder.path, {}, input);
    expect(code).toBe(0);
    const { log, notes }: Suggestion = JSON.parse(stdout);
    expect(log).toMatchObject({ files: ["-"], requests: 641, broken: 1 });
    expect(notes.map(({ code }) => code)).toContain("broken-lines");
  });

  it("prints a rule without requests that match", async () => {
    const { code, stdout } = await suggest(LOG, "--match", "DELETE");
    expect(code).toBe(0);
    expect(stdout).toContain("0 requests of 0 clients");
    expect(stdout).toContain("No request of the log matches DELETE. There is nothing to suggest.");
    expect(stdout).not.toContain("ready to paste");
  });

  it.each<[string[], number, string]>([
    [
      ["--key", "header:x-api-key"],
      1,
      "Add --map header:x-api-key=FIELD (for JSON lines) or --missing-as-absent.",
    ],
    [["--match", "example.com"], 1, "--host NAME"],
    [["--match", "{}x"], 1, "--match begins with { but is not valid JSON."],
    [["--window", "1m,60"], 1, "--window: two windows have the same length"],
    [["--rule", "login"], 1, "unknown option '--rule'. Name its requests and its clients with"],
    [["--config", "a.ts"], 1, "unknown option '--config'."],
    [["--from", "2026-11-23", "--to", "2026-11-22"], 1, "--to must be a later time"],
    [["--from", "2027-01-01"], 2, "access.log: no request"],
  ])("refuses %j", async (args, code, message) => {
    const run = await suggest(LOG, ...args);
    expect(run).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(message) });
  });

  it("prints errors as JSON with --json", async () => {
    const run = await suggest(LOG, "--json", "--key", "cookie:session");
    expect(run).toMatchObject({ code: 1, stderr: "" });
    expect(JSON.parse(run.stdout)).toMatchObject({ ok: false, error: expect.any(String) });
  });

  it("counts by the address where a value is absent, with --missing-as-absent", async () => {
    const { clients, notes } = await suggestion(
      LOG,
      ...["--key", "header:x-api-key", "--missing-as-absent"],
    );
    expect(clients).toBe(301);
    expect(notes[0]?.code).toBe("treated-as-absent");
  });

  it.each(["", "\n\n"])("has no suggestion for the log %j", async (log) => {
    const run = await suggest(log);
    expect(run).toMatchObject({ code: 2, stdout: "" });
    expect(run.stderr).toContain("access.log: no");
  });
});

describe("hostile texts of a log", () => {
  const AGENT = "\u001b[31m\u202e<script>alert(1)</script>|[x](http://example.com)`";
  const HOSTILE = line(0, "192.0.2.1", "GET /<b>|`![](//x)\u009b?secret=1", 200, AGENT);

  it.each([["text"], ["--json"]])("are harmless in %s", async (format) => {
    const run = await suggest(HOSTILE, ...(format === "text" ? [] : [format]));
    expect(run.code).toBe(0);
    for (const character of "\u001b\u009b\u202e") expect(run.stdout).not.toContain(character);
    expect(run.stdout).not.toContain("secret");
  });

  it("keep the rule valid", async () => {
    const run = await suggestion(HOSTILE);
    const [rule] = new Function(`return [${run.rule}]`)();
    expect(defineConfig({ rules: [rule] }).rules).toHaveLength(1);
  });
});
