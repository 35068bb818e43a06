import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { promisify } from "node:util";
import { afterEach, describe, expect, it, vi } from "vitest";
import { streamSource } from "../../../cli/logs/bytes.ts";
import { openLogs } from "../../../cli/logs/open-logs.ts";
import { PATIENCE } from "../../patience.ts";
import { accessLine, countedLines, logFolder } from "./log-folder.ts";

const logOf = logFolder();
const LINE = accessLine("192.0.2.1", "10:00:00");
const MANY = Array.from({ length: 20_000 }, (_, index) => {
  const time = `10:${String(Math.floor(index / 1000)).padStart(2, "0")}:00`;
  return `${accessLine("192.0.2.1", time)}\n`;
}).join("");

/** A stream that never ends. */
async function* endless(...texts: readonly string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text);
  await new Promise(() => {});
}

/** Creates a pipe in the folder of the tests. */
async function namedPipe(name: string): Promise<string> {
  const pipe = join(await logOf("folder", ""), "..", name);
  await promisify(execFile)("mkfifo", [pipe]);
  return pipe;
}

describe("reading that is interrupted", () => {
  it.each([0, 1_000_000])(
    "hands out the requests of all lines that have been read, with a delay of %d ms",
    async (maxDelayMs) => {
      const files = [await logOf("a", MANY), await logOf("b", MANY), await logOf("c", "\n")];
      const stopping = new AbortController();
      const logs = await openLogs({ files, maxDelayMs });
      let requests = 0;
      for await (const batch of logs.batches(stopping.signal)) {
        requests += batch.length;
        stopping.abort();
      }
      const { progress } = logs;
      if (maxDelayMs === 0) expect(progress.lines).toBeLessThan(40_000);
      expect(progress.requests).toBe(requests);
      expect(countedLines(progress)).toBe(progress.lines);
      expect(progress.broken).toBe(0);
    },
  );

  it("reads nothing if the signal is aborted before", async () => {
    const logs = await openLogs({ files: [await logOf("a", MANY)], maxDelayMs: 0 });
    const batches = logs.batches(AbortSignal.abort());
    for await (const _ of batches) expect.unreachable();
    expect(logs.progress).toMatchObject({ lines: 0, requests: 0 });
  });
});

describe("the first lines of a stream", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it("are awaited for a second after the first one", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const source = streamSource("-", endless(LINE.slice(0, 9), LINE.slice(9), "\n"), undefined);
    const head = source.head(1000);
    await vi.waitFor(() => expect(vi.getTimerCount()).toBe(1), { ...PATIENCE, interval: 0 });
    await vi.advanceTimersByTimeAsync(1000);
    expect(await head).toEqual({ bytes: Buffer.from(`${LINE}\n`), isWhole: false });
  });

  it("are all lines until the signal is aborted, and are returned again", async () => {
    const stopping = new AbortController();
    const source = streamSource("-", endless("first\n", "second"), stopping.signal);
    const head = source.head(1000);
    for (let turn = 0; turn < 5; turn++) await setImmediate();
    stopping.abort();
    expect(await head).toEqual({ bytes: Buffer.from("first\nsecond"), isWhole: false });
    const chunks = source.chunks(() => {});
    expect([(await chunks.next()).value, (await chunks.next()).value].join("")).toBe(
      "first\nsecond",
    );
    await source.close();
  });
});

describe.runIf(process.platform !== "win32")("a named pipe", () => {
  it("is read to its end", async () => {
    const pipe = await namedPipe("whole");
    const writer = spawn("sh", ["-c", 'cat > "$0"', pipe]);
    writer.stdin.end(MANY);
    const logs = await openLogs({ files: [pipe], maxDelayMs: 0 });
    for await (const _ of logs.batches());
    expect(logs.progress).toMatchObject({ lines: 20_000, notes: [] });
  });

  it("does not keep a command running after an interruption, with or without a writer", async () => {
    const program = `
      import { openLogs } from "${new URL("../../../cli/logs/open-logs.ts", import.meta.url)}";
      const stopping = new AbortController();
      process.on("SIGINT", () => stopping.abort());
      const { signal } = stopping;
      console.log("ready");
      try {
        const logs = await openLogs({ files: process.argv.slice(1), maxDelayMs: 0, signal });
        console.log("open");
        for await (const _ of logs.batches(signal));
        console.log(String(logs.progress.requests));
      } catch (error) {
        console.log(error.message);
      }
      process.exit();
    `;
    const flags = ["--disable-warning=ExperimentalWarning", "--input-type=module-typescript"];
    for (const hasWriter of [false, true]) {
      const pipe = await namedPipe(`silent-${hasWriter}`);
      const child = spawn(process.execPath, [...flags, "-e", program, "--", pipe]);
      let output = "";
      child.stdout.on("data", (text) => {
        output += text;
        if (output.endsWith(hasWriter ? "open\n" : "ready\n")) child.kill("SIGINT");
      });
      // After "exit", a part of the output may still arrive.
      const end = once(child, "close");
      const writer = hasWriter ? await open(pipe, "w") : undefined;
      await writer?.write(`${LINE}\n`);
      expect((await end)[0]).toBe(0);
      expect(output).toBe(
        hasWriter
          ? "ready\nopen\n1\n"
          : `ready\n${pipe}: the command was interrupted before the first line.\n`,
      );
      await writer?.close();
    }
  });
});
