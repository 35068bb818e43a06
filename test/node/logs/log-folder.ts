import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import type { LogRequest } from "../../../cli/logs/log-request.ts";
import { type OpenOptions, openLogs } from "../../../cli/logs/open-logs.ts";

/**
 * Creates an empty folder for the tests of a file, and removes it in the end.
 *
 * @returns a function that writes a file of that folder, and returns its path
 */
export function logFolder(): (name: string, content: string | Uint8Array) => Promise<string> {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "weir-logs-"));
  });
  afterAll(() => rm(folder, { recursive: true }));
  return async (name, content) => {
    const file = join(folder, name);
    await writeFile(file, content);
    return file;
  };
}

/** Reads all requests of logs. */
export async function readLogs(files: readonly string[], options: Partial<OpenOptions> = {}) {
  const logs = await openLogs({ files, ...options });
  const requests: LogRequest[] = [];
  for await (const batch of logs.batches()) requests.push(...batch);
  return { ...logs, requests };
}

/** A line in Common Log Format of 17 May 2015. */
export function accessLine(ip: string, time: string, path = "/"): string {
  return `${ip} - - [17/May/2015:${time} +0000] "GET ${path} HTTP/1.1" 200 5`;
}

/** The number of lines that were counted in any way. */
export function countedLines({
  requests,
  broken,
  outside,
  ignored,
}: {
  readonly requests: number;
  readonly broken: number;
  readonly outside: number;
  readonly ignored: number;
}): number {
  return requests + broken + outside + ignored;
}
