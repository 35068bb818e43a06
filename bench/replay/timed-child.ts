import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath, URL } from "node:url";

const REPORT_USAGE = fileURLToPath(new URL("report-usage.ts", import.meta.url));

/** The output of a child process, and its use of time and memory. */
export interface ChildRun {
  readonly stdout: string;
  /** The time from the start of the process to its end. */
  readonly seconds: number;
  /** The CPU time of all threads of the process. */
  readonly cpuSeconds: number;
  /** The most memory that the process had at once. */
  readonly peakBytes: number;
}

/**
 * Runs a program in a Node process of its own.
 *
 * @throws {Error} with the output of the process, if its exit code is not 0
 */
export async function runChild(program: string, args: readonly string[]): Promise<ChildRun> {
  const start = performance.now();
  const child = spawn(process.execPath, ["--import", REPORT_USAGE, program, ...args], {
    stdio: ["ignore", "pipe", "pipe", "pipe"],
  });
  const [stdout, stderr, usage, [code]] = await Promise.all([
    text(child.stdout as Readable),
    text(child.stderr as Readable),
    text(child.stdio[3] as Readable),
    once(child, "close"),
  ]);
  const seconds = (performance.now() - start) / 1000;
  if (code !== 0) throw new Error(`${program} ended with ${code}.\n${stdout}${stderr}`);
  return { stdout, seconds, ...JSON.parse(usage) };
}
