import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REPOSITORY, temporaryFolder } from "../cli/run-weir.ts";
import { generateLog, logText } from "./generated-log.ts";

/** A log that is larger than a pipe and the buffers of a stream, so that the command reads while the log is written. */
const LOG = logText(generateLog(10_000));

/** Code that sends SIGINT to its own process as soon as a command reads the standard input. */
const SIGNAL_WHEN_READ = `data:text/javascript,${encodeURIComponent(`
  const { read } = process.stdin;
  process.stdin.read = function (...args) {
    setImmediate(() => process.kill(process.pid, "SIGINT"));
    process.stdin.read = read;
    return read.apply(this, args);
  };
`)}`;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;

beforeAll(async () => {
  folder = await temporaryFolder();
  const rules = [{ name: "per-ip", limit: 10, window: "1m" }];
  await folder.write("weir.config.json", JSON.stringify({ rules }));
});

afterAll(() => folder[Symbol.asyncDispose]());

/** Sends a log without an end, and then a signal. */
async function interrupt(...args: string[]) {
  const command = [join(REPOSITORY, "cli/weir.ts"), "replay", "-", "--config", "weir.config.json"];
  const child = spawn(process.execPath, [...command, ...args], { cwd: folder.path });
  const output = Promise.all([text(child.stdout), text(child.stderr)]);
  const exit = once(child, "exit");
  child.stdin.on("error", () => {});
  await new Promise((resolve) => child.stdin.write(LOG, resolve));
  child.kill("SIGINT");
  const [code] = await exit;
  const [stdout, stderr] = await output;
  return { code, stdout, stderr };
}

describe.concurrent("weir replay, interrupted by Ctrl-C while standard input is open", () => {
  it("prints the report of what it has read, marked as partial, and exits with 130", async () => {
    const { code, stdout, stderr } = await interrupt("--json");
    expect({ code, stderr }).toEqual({ code: 130, stderr: "" });
    const report = JSON.parse(stdout);
    expect(report).toMatchObject({ isPartial: true });
    expect(report.notes).toContainEqual(expect.objectContaining({ code: "partial" }));
    const { lines, requests, broken, outside, ignored } = report.log;
    expect(lines).toBeGreaterThan(0);
    expect(requests + broken + outside + ignored).toBe(lines);
    expect(report.total.requests).toBe(requests);
  });
});

describe.concurrent.each(["replay", "suggest"])(
  "weir %s, interrupted before the first bytes come",
  (command) => {
    it("prints one JSON document, and exits with 130", async () => {
      const config = command === "replay" ? ["--config", "weir.config.json"] : [];
      const args = [join(REPOSITORY, "cli/weir.ts"), command, "-", ...config, "--json"];
      const child = spawn(process.execPath, ["--import", SIGNAL_WHEN_READ, ...args], {
        cwd: folder.path,
      });
      const output = Promise.all([text(child.stdout), text(child.stderr)]);
      const [code] = await once(child, "exit");
      const [stdout, stderr] = await output;
      expect({ code, stderr }).toEqual({ code: 130, stderr: "" });
      expect(JSON.parse(stdout)).toEqual({
        ok: false,
        error: "Interrupted before the first request was read.",
      });
    });
  },
);
