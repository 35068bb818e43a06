import { execFile } from "node:child_process";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { ByteSource } from "../../../cli/logs/bytes.ts";
import { openLogs } from "../../../cli/logs/open-logs.ts";
import { accessLine, countedLines, logFolder } from "./log-folder.ts";

const logOf = logFolder();
const MANY = Array.from({ length: 20_000 }, (_, index) => {
  const time = `10:${String(Math.floor(index / 1000)).padStart(2, "0")}:00`;
  return `${accessLine("192.0.2.1", time)}\n`;
}).join("");

/** A stream that writes texts and never ends. */
function endless(signal: AbortSignal, ...texts: readonly string[]): ByteSource {
  const stream = new PassThrough();
  for (const text of texts) stream.write(text);
  return new ByteSource({ name: "-", isStream: true, signal, open: () => stream });
}

describe("reading that is interrupted", () => {
  it("hands out the requests of all lines that have been read", async () => {
    const files = [await logOf("a", MANY), await logOf("b", MANY), await logOf("c", "\n")];
    const stopping = new AbortController();
    const logs = await openLogs({ files, signal: stopping.signal });
    let requests = 0;
    for await (const batch of logs.batches()) {
      requests += batch.length;
      stopping.abort();
    }
    const { progress } = logs;
    expect(progress.lines).toBeLessThan(40_000);
    expect(progress.requests).toBe(requests);
    expect(countedLines(progress)).toBe(progress.lines);
    expect(progress.broken).toBe(0);
  });

  it("is refused if it is interrupted before the first line", async () => {
    const options = { files: [await logOf("a", MANY)] };
    await expect(openLogs({ ...options, signal: AbortSignal.abort() })).rejects.toThrow(
      "the command was interrupted before the first line.",
    );
  });
});

describe("the first lines of a stream", () => {
  it("are all lines until the signal is aborted, and are returned again", async () => {
    const stopping = new AbortController();
    const source = endless(stopping.signal, "first\n", "second");
    const head = source.head(1000);
    for (let turn = 0; turn < 5; turn++) await setImmediate();
    stopping.abort();
    expect(await head).toEqual({ bytes: Buffer.from("first\nsecond"), isWhole: false });
    const chunks = source.chunks();
    let again = "";
    const readAgain = async () => {
      for await (const chunk of chunks) again += chunk;
    };
    await expect(readAgain()).rejects.toThrow("aborted");
    expect(again).toBe("first\nsecond");
  });
});

describe.runIf(process.platform !== "win32")("a pipe", () => {
  it("is refused unless it is the standard input, because it can be read only once", async () => {
    const pipe = join(await logOf("folder", ""), "..", "pipe");
    await promisify(execFile)("mkfifo", [pipe]);
    await expect(openLogs({ files: [pipe] })).rejects.toThrow(
      /a pipe or a device, .* \| npx weir replay -\.$/,
    );
  });
});
