import { setImmediate } from "node:timers/promises";
import zlib from "node:zlib";
import { describe, expect, it } from "vitest";
import { decompressed } from "../../../cli/logs/bytes.ts";

/** "hello" as a zstd frame, because Node 20 cannot make one. */
const HELLO = Buffer.from("28b52ffd200529000068656c6c6f", "hex");
/** A frame that decompressors must skip. */
const SKIPPED = Buffer.from([0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
const [GZIP_HELLO, GZIP_WORLD] = [zlib.gzipSync("hello"), zlib.gzipSync("world")];
const LONG = Array.from({ length: 20_000 }, (_, i) => `line ${i} ${Math.sin(i)}\n`).join("");

const hasNative = typeof zlib.createZstdDecompress === "function";
const WAYS = hasNative ? [true, false] : [false];
/** Sizes of chunks, which end in each part of a frame. */
const SIZES = [1, 2, 3, 4, 5, 7, 9, 11, 13, 14, 15, 25, 28, 64, 1000, 65_536];

let isClosed = false;

/** Yields bytes in chunks. As when a file is read, each chunk overwrites the one before. */
async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  isClosed = false;
  const buffer = Buffer.alloc(size);
  try {
    for (let from = 0; from < bytes.length; from += size) {
      yield buffer.subarray(0, bytes.copy(buffer, 0, from, from + size));
    }
  } finally {
    isClosed = true;
  }
}

/** Returns the text, and the message of the error that ended it. */
async function read(bytes: Buffer, size: number, isNative?: boolean): Promise<[string, string?]> {
  let text = "";
  try {
    for await (const chunk of decompressed(inChunks(bytes, size), isNative)) text += chunk;
  } catch (error) {
    return [text, (error as Error).message];
  }
  return [text];
}

/** Reads like a consumer that does other work after each chunk, so that all events of the stream happen before. */
async function readSlowly(bytes: Buffer): Promise<string> {
  let text = "";
  for await (const chunk of decompressed(inChunks(bytes, 65_536))) {
    text += chunk;
    for (let turn = 0; turn < 3; turn++) await setImmediate();
  }
  return text;
}

const ENDS_EARLY = /unexpected (end of file|EOF)/;

describe("decompressed", () => {
  it.each(["", "a", "abc", "a long text", "\0\0\0\0\0", "\x1f\x8b"])(
    "returns %j as it is",
    async (text) => {
      for (const size of SIZES) expect(await read(Buffer.from(text), size)).toEqual([text]);
    },
  );

  it.each(SIZES)("reads all members of a gzip file in chunks of %d bytes", async (size) => {
    const two = Buffer.concat([GZIP_HELLO, GZIP_WORLD]);
    expect(await read(two, size)).toEqual(["helloworld"]);
    const padded = Buffer.concat([GZIP_HELLO, Buffer.alloc(70), GZIP_WORLD, Buffer.alloc(9)]);
    expect(await read(padded, size)).toEqual(["helloworld"]);
    const [text, error] = await read(Buffer.concat([GZIP_HELLO, GZIP_WORLD.subarray(0, 9)]), size);
    expect([text, error]).toEqual(["hello", expect.stringMatching(ENDS_EARLY)]);
  });

  describe.each(WAYS)("zstd, with Node's own decompressor: %s", (isNative) => {
    it.each(SIZES)("reads all frames in chunks of %d bytes", async (size) => {
      for (const frames of [
        [HELLO, HELLO],
        [HELLO, SKIPPED, HELLO],
        [SKIPPED, HELLO, HELLO],
        [SKIPPED, SKIPPED, HELLO, HELLO, SKIPPED],
      ]) {
        expect(await read(Buffer.concat(frames), size, isNative)).toEqual(["hellohello"]);
      }
    });

    it.each(SIZES)("reports data that end early in chunks of %d bytes", async (size) => {
      const [text, error] = await read(
        Buffer.concat([HELLO, HELLO.subarray(0, 9)]),
        size,
        isNative,
      );
      expect([text, error]).toEqual(["hello", expect.stringMatching(ENDS_EARLY)]);
    });

    it.each(SIZES)("reports other bytes after the data in chunks of %d bytes", async (size) => {
      const bytes = Buffer.concat([HELLO, Buffer.from("other bytes, not compressed")]);
      const [text, error] = await read(bytes, size, isNative);
      expect([text, error]).toEqual(["hello", expect.stringMatching(/other bytes|zstd|frame/)]);
    });

    it("refuses frames that need more than 128 MiB of memory", async () => {
      const header = (exponent: number) => Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3]);
      const zeros = Buffer.from("0300000000000000", "hex");
      for (const exponent of [18, 20, 31]) {
        const [text, error] = await read(Buffer.concat([header(exponent), zeros]), 64, isNative);
        expect([text, error]).toEqual(["", expect.stringMatching(/memory|too large/)]);
      }
    });

    it.runIf(hasNative)("reads frames of several blocks", async () => {
      const bytes = zlib.zstdCompressSync(LONG);
      for (const size of [1000, 65_536]) {
        expect((await read(bytes, size, isNative))[0] === LONG).toBe(true);
      }
    });
  });

  it("reads gzip in several blocks, and reports damage after what could be read", async () => {
    const bytes = zlib.gzipSync(LONG);
    expect((await read(bytes, 65_536))[0] === LONG).toBe(true);
    bytes.fill(0xff, bytes.length >> 1, (bytes.length >> 1) + 50);
    const [text, error] = await read(bytes, 65_536);
    expect(text.startsWith(LONG.slice(0, LONG.length / 4))).toBe(true);
    expect(error).toMatch(/invalid|checksum/);
  });

  it("reads all members and frames, also if its consumer is slow", async () => {
    const parts = Array.from({ length: 20 }, (_, i) => LONG.slice(i * 9000, i * 9000 + 9000 + i));
    const padding = Buffer.alloc(512);
    const members = parts.flatMap((part) => [zlib.gzipSync(part), padding]);
    expect((await readSlowly(Buffer.concat(members))) === parts.join("")).toBe(true);
    if (!hasNative) return;
    const frames = parts.map((part) => zlib.zstdCompressSync(part));
    expect((await readSlowly(Buffer.concat(frames))) === parts.join("")).toBe(true);
  });

  describe.each([
    [
      "a wrong checksum",
      (bytes: Buffer) => bytes.fill(9, bytes.length - 8, bytes.length - 4),
      "its checksum is wrong",
    ],
    ["a wrong length", (bytes: Buffer) => bytes.fill(9, bytes.length - 4), "its checksum is wrong"],
    ["text after it", (bytes: Buffer) => Buffer.concat([bytes, Buffer.from("plain")]), "other"],
    ["two bytes after it", (bytes: Buffer) => Buffer.concat([bytes, Buffer.from("no")]), "other"],
    ["a cut checksum", (bytes: Buffer) => bytes.subarray(0, -3), "unexpected end of file"],
  ])("gzip with %s", (_, damage, message) => {
    it.each(["short\n", LONG.slice(0, 70_000), LONG])("returns all text first", async (text) => {
      for (const size of [7, 1000, 65_536]) {
        const [found, error] = await read(damage(zlib.gzipSync(text)), size);
        expect(found === text).toBe(true);
        expect(error).toContain(message);
      }
    });
  });

  it.each(SIZES)("reads gzip headers with all fields in chunks of %d bytes", async (size) => {
    const [head, data] = [GZIP_HELLO.subarray(0, 10), GZIP_HELLO.subarray(10)];
    const withFields = Buffer.from(head);
    withFields[3] = 2 + 4 + 8 + 16;
    const fields = Buffer.from("\x03\0abcaccess.log\0a comment\0cc", "latin1");
    const bytes = Buffer.concat([withFields, fields, data, GZIP_WORLD]);
    expect(await read(bytes, size)).toEqual(["helloworld"]);
    const [text, error] = await read(bytes.subarray(0, 20), size);
    expect([text, error]).toEqual(["", expect.stringMatching(ENDS_EARLY)]);
  });

  it("refuses gzip headers with a name that has no end", async () => {
    const head = Buffer.from(GZIP_HELLO.subarray(0, 10));
    head[3] = 8;
    const [, error] = await read(Buffer.concat([head, Buffer.alloc(200_000, "x")]), 65_536);
    expect(error).toBe("it has no end of its name or comment");
  });

  it.each([
    ["bzip2", "425a6839", "bzcat"],
    ["xz", "fd377a585a00", "xzcat"],
    ["zip", "504b0304", "unzip -p"],
    ["UTF-16", "fffe3100", "iconv"],
  ])("refuses %s, and names a program that converts it", async (name, hex, program) => {
    const [text, error] = await read(Buffer.from(hex, "hex"), 64);
    expect([text, error]).toEqual(["", expect.stringContaining(`it is ${name}.`)]);
    expect(error).toContain(program);
  });

  it("stops in the middle of data that become very large, and closes its source", async () => {
    const zeros = Buffer.alloc(64 * 2 ** 20);
    const compressed: [Buffer, boolean?][] = [[zlib.gzipSync(zeros)]];
    if (hasNative)
      compressed.push(...WAYS.map((way): [Buffer, boolean] => [zlib.zstdCompressSync(zeros), way]));
    for (const [bytes, isNative] of compressed) {
      let largest = 0;
      let chunks = 0;
      for await (const chunk of decompressed(inChunks(bytes, 65_536), isNative)) {
        largest = Math.max(largest, chunk.length);
        if (++chunks === 20) break;
      }
      expect(largest).toBeLessThanOrEqual(2 ** 18);
      expect(isClosed).toBe(true);
    }
  });
});
