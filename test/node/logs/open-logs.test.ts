import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import { type LogOptions, openLogs } from "../../../cli/logs/open-logs.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "weir-logs-"));
});
afterAll(() => rm(folder, { recursive: true }));

const line = (ip: string, time: string) =>
  `${ip} - - [17/May/2015:${time} +0000] "GET / HTTP/1.1" 200 5`;

async function logOf(name: string, content: string): Promise<string> {
  const file = join(folder, name);
  await writeFile(file, content);
  return file;
}

async function read(files: readonly string[], options: Partial<LogOptions> = {}) {
  const logs = await openLogs({ files, maxDelayMs: 60_000, ...options });
  const requests: LogRequest[] = [];
  for await (const batch of logs.batches()) requests.push(...batch);
  return { logs, requests, progress: logs.progress };
}

describe("openLogs", () => {
  it("returns the requests in the order of their times", async () => {
    const times = ["10:05:03", "10:04:43", "10:05:00"];
    const file = await logOf("a", times.map((time, i) => line(`192.0.2.${i}`, time)).join("\n"));
    const { requests, progress } = await read([file]);
    expect(requests.map(({ ip }) => ip)).toEqual(["192.0.2.1", "192.0.2.2", "192.0.2.0"]);
    expect(progress).toMatchObject({ lines: 3, requests: 3, broken: 0, late: 0 });
    expect(progress.bytesRead).toBe(progress.bytesTotal);
  });
});
