import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath, URL } from "node:url";

const REPORT_USAGE = fileURLToPath(new URL("report-usage.ts", import.meta.url));

/** What a child process did. */
export interface ChildRun {
  readonly stdout: string;
  /** From its start to its end. */
  readonly seconds: number;
  /** The time that it has used the CPU, with all its threads. */
  readonly cpuSeconds: number;
  /** The most memory that it had at once. */
  readonly peakBytes: number;
}

/**
 * Runs a program in a Node process of its own.
 *
 * @throws {Error} with what it has printed, if it does not end with 0
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
