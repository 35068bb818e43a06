import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { CommandFailure } from "../../cli/command-failure.ts";
import { LOG_FORMATS, type LogFormat, type LogRequest } from "../../cli/logs/log-request.ts";
import { type Logs, openLogs } from "../../cli/logs/open-logs.ts";
import { parseAddress } from "../../src/config/address.ts";
import { LOG_LINES } from "../arbitraries/log-lines.ts";
import { run } from "../property.ts";
import type { Outcome, RunOptions, Target } from "../target.ts";

/** The maximum number of lines of a file. */
const MAX_LINES = 60;
/** After this number of files, the number of lines is compared with the number of cases. */
const FILES_PER_ROUND = 500;

const METHOD = /^[^\s"(),/:;<=>?@[\\\]{}\u0080-\uffff]{1,32}$/;

/** Control characters, which no text of a report may have. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it finds
const CONTROL = /[\0-\x1f\x7f-\x9f]/;

/** Reads logs with broken lines. Each line is a case, and each format has all cases. */
export const logsTarget: Target = {
  name: "logs",
  about: "a log with any lines is read without an error, and each line is counted exactly once",
  async check(options) {
    const folder = await mkdtemp(join(tmpdir(), "weir-fuzz-"));
    try {
      let cases = 0;
      for (const format of LOG_FORMATS) {
        const outcome = await checkFormat(format, join(folder, format), options);
        cases += outcome.cases;
        if (outcome.finding) return { ...outcome, cases, note: `format ${format}` };
      }
      return { cases, note: `${options.cases.toLocaleString("en")} lines of each format` };
    } finally {
      await rm(folder, { recursive: true });
    }
  },
};

async function checkFormat(
  format: LogFormat,
  file: string,
  { cases, seed }: RunOptions,
): Promise<Outcome> {
  let lines = 0;
  const property = fc.asyncProperty(scenario(format), async (given) => {
    await writeFile(file, Buffer.from(given.content, "latin1"));
    lines += await checkFile(file, format, given);
  });
  for (let round = 0; lines < cases; round++) {
    const outcome = await run(property, { cases: FILES_PER_ROUND, seed: seed + round });
    if (outcome.finding) return { ...outcome, cases: lines };
  }
  return { cases: lines };
}

interface Scenario {
  /** The file. Each character is a byte. */
  readonly content: string;
  readonly isNamed: boolean;
  readonly withDurations: boolean;
}

function scenario(format: LogFormat): fc.Arbitrary<Scenario> {
  const lines = fc.array(LOG_LINES[format], { minLength: 1, maxLength: MAX_LINES, size: "max" });
  return fc.record({
    content: lines.map((all) => all.join("\n")),
    isNamed: fc.boolean(),
    withDurations: fc.boolean(),
  });
}

/** Reads a file, and returns the number of its lines. */
async function checkFile(
  file: string,
  format: LogFormat,
  { content, isNamed, withDurations }: Scenario,
): Promise<number> {
  const expected = countLines(content);
  const from = Date.UTC(2026, 10, 22, 8, 0, 10);
  let logs: Logs;
  try {
    logs = await openLogs({
      files: [file],
      format: isNamed ? format : undefined,
      withDurations,
      from,
    });
  } catch (error) {
    // A file may have no line in the named format, or in any known one.
    if (error instanceof CommandFailure) return expected;
    throw error;
  }
  let last = Number.NEGATIVE_INFINITY;
  try {
    for await (const batch of logs.batches()) {
      for (const request of batch) {
        checkRequest(request);
        if (request.at < last || request.at < from) throw new Error(`${request.at} after ${last}`);
        last = request.at;
      }
    }
  } catch (error) {
    // The lines may be out of order by more than a minute.
    if (error instanceof CommandFailure) return expected;
    throw error;
  }
  checkCounts(logs, expected);
  return Math.max(1, logs.progress.lines);
}

/** Counts lines with more than white space, without the code of the reader. */
function countLines(content: string): number {
  const lines = Buffer.from(content, "latin1").toString().split("\n");
  return lines.filter((line: string) => line.trim() !== "").length;
}

function checkRequest(request: LogRequest): void {
  const { at, durationMs = 0, method, target, ip, status, headers } = request;
  if (!Number.isFinite(at)) throw new Error(`time ${at}`);
  if (!(durationMs >= 0 && durationMs < Number.POSITIVE_INFINITY))
    throw new Error(`${durationMs} ms`);
  if (!METHOD.test(method) || !target.startsWith("/")) throw new Error(`${method} ${target}`);
  if (ip !== undefined && parseAddress(ip)?.toString() !== ip) throw new Error(`address ${ip}`);
  if (status !== undefined && !(status >= 1 && status <= 999)) throw new Error(`status ${status}`);
  for (const [name, value] of headers ?? []) {
    if (name !== name.toLowerCase() || typeof value !== "string") throw new Error(`field ${name}`);
  }
}

function checkCounts({ progress }: Logs, expected: number): void {
  const { lines, requests, broken, outside, ignored, brokenLines, notes } = progress;
  const counted = requests + broken + outside + ignored;
  if (counted !== lines) throw new Error(`${lines} lines, but ${counted} counted`);
  if (lines !== expected) throw new Error(`${lines} of ${expected} lines`);
  if (brokenLines.length !== Math.min(broken, 10)) throw new Error("a wrong number of samples");
  for (const { reason } of brokenLines) {
    if (CONTROL.test(reason)) throw new Error(`reason ${reason}`);
  }
  if (CONTROL.test(notes.join(""))) throw new Error(`notes ${notes.join()}`);
}
