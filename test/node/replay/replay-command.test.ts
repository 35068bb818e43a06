import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReplayReport } from "../../../cli/replay/report.ts";
import { checkBounds } from "../../../cli/replay/run-replay.ts";
import { callWeir, temporaryFolder } from "../cli/run-weir.ts";
import { generateLog, logText } from "./generated-log.ts";

const LINES = generateLog(3000);
const ruleOf = (limit: number, more = {}) => ({ name: "per-ip", limit, window: "1m", ...more });
const configOf = (...rules: object[]) => JSON.stringify({ rules });
const MINUTE = /^(\S+) - - \[(\d+\/\w+\/\d+:\d+:\d+):\d+ \+0000\]/;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;

beforeAll(async () => {
  folder = await temporaryFolder();
  await folder.write("access.log", logText(LINES));
  await folder.write("weir.config.json", configOf(ruleOf(10)));
  await folder.write("looser.config.json", configOf(ruleOf(20)));
  await folder.write("same.config.json", configOf(ruleOf(10)));
  await folder.write("faulty.config.json", configOf(ruleOf(-1)));
  await folder.write("empty.log", "");
  await folder.write("broken.log", "one\ntwo\nthree\n");
});

afterAll(() => folder[Symbol.asyncDispose]());

function replay(...args: string[]) {
  const config = args.includes("--config") ? [] : ["--config", "weir.config.json"];
  return callWeir(["replay", ...config, ...args], folder.path);
}

async function reportOf(...args: string[]): Promise<ReplayReport> {
  return JSON.parse((await replay("--json", ...args)).stdout);
}

describe("weir replay", () => {
  it("denies as many requests as a count of the lines by address and minute", async () => {
    // Counts only the texts of the lines, without an order, like awk.
    const counts: Record<string, number> = {};
    for (const { text } of LINES) {
      const [, address, minute] = MINUTE.exec(text) ?? [];
      const key = `${address} ${minute}`;
      counts[key] = (counts[key] ?? 0) + 1;
    }
    const over = Object.values(counts).map((count) => Math.max(0, count - 10));
    const denied = over.reduce((sum, count) => sum + count, 0);
    const clients = Object.keys(counts).filter((_, at) => (over[at] ?? 0) > 0);
    expect(denied).toBeGreaterThan(300);
    const { total, rules, log } = await reportOf("access.log");
    expect(total).toMatchObject({ requests: 3000, denied, allowed: 3000 - denied });
    expect(total.clientsDenied).toBe(new Set(clients.map((key) => key.split(" ")[0])).size);
    expect(rules[0]).toMatchObject({ name: "per-ip", denied });
    expect(log).toMatchObject({ lines: 3000, requests: 3000, broken: 0 });
  });

  it("denies the requests after the tenth by time, and counts which of them had succeeded", async () => {
    const counts = new Map<string, number>();
    let succeeded = 0;
    for (const { at, ip, status } of LINES.toSorted((one, other) => one.at - other.at)) {
      const key = `${ip} ${Math.floor(at / 60_000)}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
      if ((counts.get(key) ?? 0) > 10 && status < 400) succeeded++;
    }
    const { total } = await reportOf("access.log");
    expect(total.deniedSucceeded).toBe(succeeded);
    expect(total.deniedSucceeded).toBeLessThan(total.denied);
  });

  it("has the same bytes of output in each run, in each form", async () => {
    for (const form of [[], ["--json"]]) {
      const runs = [await replay("access.log", ...form), await replay("access.log", ...form)];
      expect(runs[0]).toEqual(runs[1]);
      expect(runs[0]).toMatchObject({ code: 0, stderr: "" });
    }
  });

  it("prints queries in no form, because they may contain credentials", async () => {
    for (const form of [[], ["--json"]]) {
      const { stdout } = await replay("access.log", ...form);
      expect(stdout).not.toContain("session=");
    }
  });

  it("finds no difference between two equal configurations", async () => {
    const { comparison, total } = await reportOf("access.log", "--against", "same.config.json");
    expect(comparison).toMatchObject({
      against: "same.config.json",
      before: { denied: total.denied, clientsDenied: total.clientsDenied },
      requests: { newlyDenied: 0, newlyAllowed: 0, deniedByBoth: total.denied },
      clients: { newlyDenied: 0, noLongerDenied: 0 },
    });
  });

  it("compares each request once", async () => {
    const { comparison, total } = await reportOf("access.log", "--against", "looser.config.json");
    const { newlyDenied, newlyAllowed, allowedByBoth, deniedByBoth } = comparison?.requests ?? {};
    const all = [newlyDenied, newlyAllowed, allowedByBoth, deniedByBoth];
    expect(all.reduce((sum = 0, requests = 0) => sum + requests)).toBe(3000);
    expect(total.requests).toBe(3000);
  });

  it("compares with another configuration", async () => {
    const looser = await reportOf("access.log", "--config", "looser.config.json");
    const { comparison, total } = await reportOf("access.log", "--against", "looser.config.json");
    expect(comparison?.before.denied).toBe(looser.total.denied);
    expect(comparison?.requests).toMatchObject({
      newlyDenied: total.denied - looser.total.denied,
      newlyAllowed: 0,
      deniedByBoth: looser.total.denied,
    });
    const { stdout } = await replay("access.log", "--against", "looser.config.json");
    expect(stdout).toContain("Clients newly denied most");
  });

  it("counts requests from --from, and before --to", async () => {
    const times = LINES.map(({ at }) => at).sort((one, other) => one - other);
    const [from = 0, to = 0] = [times[700], times[2100]];
    const options = ["--from", new Date(from).toISOString(), "--to", new Date(to).toISOString()];
    const { log, total } = await reportOf("access.log", ...options);
    const expected = times.filter((at) => at >= from && at < to).length;
    expect(log).toMatchObject({ requests: expected, outside: 3000 - expected, lines: 3000 });
    expect(Date.parse(log.from ?? "")).toBe(from);
    expect(Date.parse(log.to ?? "")).toBeLessThan(to);
    expect(total.requests).toBe(expected);
  });

  it("replays a log of one request", async () => {
    await folder.write("one.log", logText(LINES.slice(0, 1)));
    const { total } = await reportOf("one.log");
    expect(total).toMatchObject({ requests: 1, denied: 0, clients: 1 });
  });

  it("counts and shows broken lines", async () => {
    await folder.write(
      "some.log",
      `${logText(LINES.slice(0, 50))}\u001b[31mbroken ${"x".repeat(500)}\n`,
    );
    const { log, total } = await reportOf("some.log");
    expect([log.broken, log.brokenLines.length, total.requests]).toEqual([1, 1, 50]);
    const { stdout, code } = await replay("some.log");
    expect(code).toBe(0);
    expect(stdout).toContain("! Lines left out, because they could not be read: 1 of 51.");
    expect(stdout).toContain("some.log:51:");
    expect(stdout).not.toContain("\u001b");
  });
});

describe("the exit code of weir replay", () => {
  const AGAINST = ["--against", "looser.config.json"];

  it.each([
    ["0 if as many clients are denied as allowed", 0, ["--max-denied", "60"], ""],
    ["1 if more clients are denied", 1, ["--max-denied", "0"], "--max-denied allows 0."],
    ["0 if no more are newly denied", 0, [...AGAINST, "--max-newly-denied", "60"], ""],
    ["1 if more are newly denied", 1, [...AGAINST, "--max-newly-denied", "0"], "FAILED: "],
  ])("is %s", async (_, code, options, text) => {
    const run = await replay("access.log", ...options);
    expect(run).toMatchObject({ code, stderr: "", stdout: expect.stringContaining(text) });
    const json = await replay("access.log", ...options, "--json");
    expect(json.code).toBe(code);
    expect(JSON.parse(json.stdout).failed).toHaveLength(code);
  });

  it.each([
    [1, ["access.log", "--max-newly-denied", "3"], "--against <file>"],
    [1, ["access.log", "--from", "2026-11-22", "--to", "2026-11-21"], "--to must be a later time"],
    [1, ["access.log", "./access.log"], "is named twice"],
    [1, ["access.log", "--host", "b a d"], "--host b a d: this is not a host name"],
    [1, ["access.log", "--max-denied", "many"], "a whole number from 0"],
    [1, [], "missing required argument 'log'"],
    [2, ["none.log"], "none.log"],
    [1, ["access.log", "--map", "ip=client"], "--map is for JSON lines"],
    [2, ["empty.log"], "empty.log"],
    [2, ["empty.log", "--map", "ip=client"], "no request was found"],
    [2, ["broken.log"], "broken.log"],
    [2, ["broken.log", "--format", "combined"], "broken.log"],
    [2, ["access.log", "--from", "2030-01-01"], "no request was found"],
    [2, ["access.log", "--config", "none.json"], "none.json could not be loaded"],
    [2, ["access.log", "--config", "faulty.config.json"], "faulty.config.json has 1 fault"],
    [2, ["access.log", "--against", "faulty.config.json"], "rules[0].limit"],
    [
      1,
      ["access.log", "--html", "report.html"],
      "unknown option '--html'. Use the text, or --json",
    ],
    [1, ["access.log", "--markdown"], "unknown option '--markdown'. Copy the text, or use --json"],
    [1, ["access.log", "--max-delay", "5m"], "unknown option '--max-delay'. Lines may be out of"],
  ])("is %d for %j, with the reason", async (code, args, reason) => {
    const text = await replay(...args);
    expect(text).toMatchObject({ code, stdout: "", stderr: expect.stringContaining(reason) });
    const json = await replay(...args, "--json");
    expect(json.code).toBe(code);
    expect(JSON.parse(json.stdout)).toEqual({ ok: false, error: expect.stringContaining(reason) });
  });

  it.each<{ maxDenied: number } | { maxNewlyDenied: number }>([
    { maxDenied: 5 },
    { maxNewlyDenied: 0 },
  ])("is 2 for %j if the log does not state addresses, by which clients are counted", (bounds) => {
    expect(() => checkBounds(bounds, new Set())).toThrow("does not state addresses");
    expect(() => checkBounds(bounds, new Set(["ip"]))).not.toThrow();
    expect(() => checkBounds({}, new Set())).not.toThrow();
  });
});
