import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { CommandFailure } from "../../../cli/command-failure.ts";
import { reasonOf } from "../../../cli/logs/bytes.ts";
import { openLogs } from "../../../cli/logs/open-logs.ts";
import { accessLine, countedLines, logFolder, readLogs } from "./log-folder.ts";

const logOf = logFolder();
const LINE = accessLine("192.0.2.1", "10:00:00");
const COUNT = 20_000;
const MANY = Array.from({ length: COUNT }, (_, index) => {
  const parts = [10, Math.floor(index / 1000), Math.floor((index % 1000) / 17)];
  const time = parts.map((part) => String(part).padStart(2, "0")).join(":");
  return `${accessLine(`192.0.2.${(index * 7919) % 251}`, time)}\n`;
}).join("");

/** The number of files that this process has open; 0 where the system does not list them. */
async function openFiles(): Promise<number> {
  return (await readdir("/proc/self/fd").catch(() => [])).length;
}

describe("a file that is no log", () => {
  it.each([
    ["text", "Lorem ipsum\ndolor\n"],
    ["bytes", Uint8Array.from({ length: 100_000 }, (_, i) => (i * 7919) % 256)],
    ["zeros", new Uint8Array(100_000)],
    ["a list in JSON", '[\n{"a":1},\n{"b":2}\n]'.replaceAll("\n", " ")],
    ["a long line", "x".repeat(1_000_000)],
    ["lone surrogates", '"\\ud800"\n\\udfff'],
  ])("is refused: %s", async (name, content) => {
    const file = await logOf(name.replaceAll(" ", "-"), content);
    await expect(readLogs([file])).rejects.toThrow(CommandFailure);
    await expect(readLogs([file])).rejects.toThrow(
      /^\S+: none of the first lines has a known format\. Line 1 .+\. Allowed: /,
    );
  });

  it.each([
    ["no/such.log", /^no\/such\.log cannot be read: there is no such file\.$/],
    [tmpdir(), /is a directory, a pipe or a device, .* Name files/],
    [`a\0b`, /cannot be read/],
  ])("is refused with the reason: %j", async (file, message) => {
    await expect(readLogs([file])).rejects.toThrow(CommandFailure);
    await expect(readLogs([file])).rejects.toThrow(message);
  });

  it.each(["EACCES", "EPERM"])("is refused if the user may not read it: %s", (code) => {
    expect(reasonOf(Object.assign(new Error("a"), { code }))).toBe("this user may not read it.");
  });

  it("is an empty log if it has no lines", async () => {
    for (const content of ["", "\n \n\t\r\n", "\ufeff", gzipSync("")]) {
      const file = await logOf("empty", content);
      const { requests, progress } = await readLogs([file]);
      expect(requests).toEqual([]);
      expect(progress).toMatchObject({ lines: 0, broken: 0, notes: [`${file} is empty.`] });
    }
  });
});

describe("a damaged log", () => {
  it("counts what could be read of compressed data that end early, and adds a note", async () => {
    const bytes = gzipSync(MANY);
    const file = await logOf("cut.gz", bytes.subarray(0, bytes.length >> 1));
    const { requests, progress } = await readLogs([file]);
    expect(requests.length).toBeGreaterThan(COUNT / 5);
    expect(progress.notes).toEqual([
      `${file} was read only up to an error: its compressed data ends too early.`,
    ]);
    expect(countedLines(progress)).toBe(progress.lines);
  });

  it("counts the lines before damage in compressed data", async () => {
    const bytes = gzipSync(MANY);
    bytes.fill(0xff, bytes.length >> 1);
    const { requests, progress } = await readLogs([await logOf("damaged.gz", bytes)]);
    expect(requests.length).toBeGreaterThan(COUNT / 5);
    expect(progress.notes).toEqual([expect.stringContaining("was read only up to an error: ")]);
    expect(countedLines(progress)).toBe(progress.lines);
  });

  it("is refused if nothing of it can be read", async () => {
    const file = await logOf("short.gz", gzipSync(LINE).subarray(0, 12));
    await expect(readLogs([file])).rejects.toThrow(
      /cannot be read: its compressed data ends too early\./,
    );
  });

  it.each([
    ["a line over 64 KiB", `${LINE}\n${"x".repeat(70_000)}\n${LINE}\n`, "is longer than 64 KiB"],
    [
      "a line of 16 MiB that decompresses from few bytes",
      gzipSync(`${LINE}\n${"x".repeat(2 ** 24)}\n${LINE}`),
      "is longer than 64 KiB",
    ],
    ["NUL bytes, as after a crash", `${LINE}\n${"\0".repeat(500)}\n${LINE}\n`, "has no fields"],
    [
      "bytes that are no UTF-8",
      Buffer.from(`${LINE}\n\xff\xfe\xc3 \xa0\n${LINE}\n`, "latin1"),
      "does not begin with an IP address",
    ],
  ])("has %s", async (name, content, reason) => {
    const { requests, progress } = await readLogs([await logOf(`${name.length}`, content)]);
    expect(requests).toHaveLength(2);
    expect(progress).toMatchObject({ lines: 3, broken: 1, brokenLines: [{ line: 2 }] });
    expect(progress.brokenLines[0]?.reason).toContain(reason);
  });

  it("may have a byte order mark and Windows line ends", async () => {
    const { requests, progress } = await readLogs([
      await logOf("windows", `\ufeff${LINE}\r\n${LINE}\r\n`),
    ]);
    expect(requests).toHaveLength(2);
    expect(progress.lines).toBe(2);
  });
});

describe("a consumer that stops", () => {
  it("leaves no file open, whether it has read all, some or nothing", async () => {
    const files = [
      await logOf("one", MANY),
      await logOf("two.gz", gzipSync(MANY)),
      await logOf("three", MANY),
    ];
    const before = await openFiles();
    await readLogs(files);
    for await (const _ of (await openLogs({ files })).batches()) break;
    const logs = await openLogs({ files });
    const batches = logs.batches()[Symbol.asyncIterator]();
    await batches.next();
    await batches.return?.();
    await expect(readLogs([...files, "no/such.log"])).rejects.toThrow("no such file");
    expect(await openFiles()).toBe(before);
    expect(logs.progress.lines).toBeLessThan(3 * COUNT);
  });
});

describe("the standard input", () => {
  const program = `
    import { openLogs } from "${new URL("../../../cli/logs/open-logs.ts", import.meta.url)}";
    let requests = 0;
    const logs = await openLogs({ files: ["-", ...process.argv.slice(1)] });
    for await (const batch of logs.batches()) {
      requests += batch.length;
      if (process.env.STOP) break;
    }
    console.log(JSON.stringify({ requests }));
  `;

  async function run(input: string | Buffer, args: readonly string[] = [], stop = "") {
    const promise = promisify(execFile)(
      process.execPath,
      [
        "--disable-warning=ExperimentalWarning",
        "--input-type=module-typescript",
        "-e",
        program,
        "--",
        ...args,
      ],
      { env: { ...process.env, STOP: stop } },
    );
    promise.child.stdin?.on("error", () => {});
    promise.child.stdin?.end(input);
    return JSON.parse((await promise).stdout) as { requests: number };
  }

  it("is read to its end, plain or compressed, beside files", async () => {
    const file = await logOf("beside", MANY);
    expect(await run(MANY)).toEqual({ requests: COUNT });
    expect(await run(gzipSync(MANY), [file])).toMatchObject({ requests: 2 * COUNT });
  });

  it("does not keep the program running when the consumer stops, or when a file cannot be read", async () => {
    const { requests } = await run(MANY, [], "yes");
    expect(requests).toBeLessThan(COUNT);
    await expect(run(MANY, ["no/such.log"])).rejects.toThrow("no such file");
  });
});
