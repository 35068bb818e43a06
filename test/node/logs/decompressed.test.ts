import { setImmediate } from "node:timers/promises";
import zlib from "node:zlib";
import { describe, expect, it } from "vitest";
import { decompressed } from "../../../cli/logs/bytes.ts";

/** "hello" as a zstd frame, because Node 20 cannot make one. */
const HELLO = Buffer.from("28b52ffd200529000068656c6c6f", "hex");
const [GZIP_HELLO, GZIP_WORLD] = [zlib.gzipSync("hello"), zlib.gzipSync("world")];
const LONG = Array.from({ length: 8000 }, (_, i) => `line ${i} ${Math.sin(i)}\n`).join("");

const hasZstd = typeof zlib.createZstdDecompress === "function";
/** Sizes of chunks, which end in each part of a frame. */
const SIZES = [1, 2, 3, 4, 5, 7, 9, 11, 13, 14, 15, 25, 28, 64, 1000, 65_536];
/** The maximum loss of text before damage, in bytes: one chunk of the decompressor. */
const LOST = 65_536;

let isClosed = false;

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  isClosed = false;
  try {
    for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
  } finally {
    isClosed = true;
  }
}

/**
 * Returns the text, and the message of the error that ended it.
 *
 * @param turns how many turns of the event loop the consumer takes for each chunk
 */
async function read(bytes: Buffer, size: number, turns = 0): Promise<[string, string?]> {
  let text = "";
  try {
    for await (const chunk of decompressed(inChunks(bytes, size))) {
      text += chunk;
      for (let turn = 0; turn < turns; turn++) await setImmediate();
    }
  } catch (error) {
    return [text, (error as Error).message];
  }
  return [text];
}

const ENDS_EARLY = expect.stringContaining("unexpected end of file");

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
    expect(await read(two, size, 3)).toEqual(["helloworld"]);
    const cut = Buffer.concat([GZIP_HELLO, GZIP_WORLD.subarray(0, 9)]);
    expect(await read(cut, size)).toEqual(["hello", ENDS_EARLY]);
    expect(await read(cut, size, 3)).toEqual(["hello", ENDS_EARLY]);
  });

  it.each([
    ["gzip", () => zlib.gzipSync(LONG)],
    ["zstd", () => zlib.zstdCompressSync(LONG)],
  ])("reads %s of several blocks, and all text before its early end", async (name, compress) => {
    if (name === "zstd" && !hasZstd) return;
    const bytes = compress();
    for (const turns of [0, 3]) {
      for (const size of [1000, 65_536]) {
        expect((await read(bytes, size, turns))[0] === LONG).toBe(true);
        const [text, error] = await read(bytes.subarray(0, -3), size, turns);
        expect(LONG.startsWith(text)).toBe(true);
        expect(text.length).toBeGreaterThan(LONG.length - 2 * LOST);
        expect(error).toEqual(ENDS_EARLY);
      }
    }
  });

  it.runIf(hasZstd).each(SIZES)("reads a zstd frame in chunks of %d bytes", async (size) => {
    expect(await read(HELLO, size)).toEqual(["hello"]);
    expect((await read(HELLO.subarray(0, 9), size))[1]).toEqual(ENDS_EARLY);
    const [text, error] = await read(Buffer.concat([HELLO, HELLO, Buffer.from("other")]), size);
    // Whether Node reads a second frame depends on where the chunks end.
    expect(["hello", "hellohello"]).toContain(text);
    expect(error).toMatch(/zstdcat|frame/);
  });

  it.runIf(!hasZstd)("names zstdcat on versions of Node without zstd", async () => {
    expect(await read(HELLO, 64)).toEqual(["", expect.stringContaining("zstdcat FILE | npx weir")]);
  });

  it.runIf(hasZstd)("refuses zstd frames that need more than 128 MiB of memory", async () => {
    const header = (exponent: number) => Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3]);
    const zeros = Buffer.from("0300000000000000", "hex");
    for (const exponent of [18, 20, 31]) {
      const [text, error] = await read(Buffer.concat([header(exponent), zeros]), 64);
      expect([text, error]).toEqual(["", expect.stringMatching(/memory|too large/)]);
    }
  });

  describe.each([
    ["damage", (bytes: Buffer) => bytes.fill(0xff, bytes.length >> 1, (bytes.length >> 1) + 50)],
    ["a wrong checksum", (bytes: Buffer) => bytes.fill(9, bytes.length - 8, bytes.length - 4)],
    ["a wrong length", (bytes: Buffer) => bytes.fill(9, bytes.length - 4)],
    ["text after it", (bytes: Buffer) => Buffer.concat([bytes, Buffer.from("plain")])],
    ["two bytes after it", (bytes: Buffer) => Buffer.concat([bytes, Buffer.from("no")])],
    ["zeros after it", (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(9)])],
  ])("gzip with %s", (kind, damage) => {
    it.each([7, 1000, 65_536])(
      "returns the text before it, in chunks of %d bytes",
      async (size) => {
        const [text, error] = await read(damage(zlib.gzipSync(LONG)), size);
        const readable = kind === "damage" ? LONG.length / 2 : LONG.length;
        expect(LONG.startsWith(text.slice(0, readable - LOST))).toBe(true);
        expect(text.length).toBeGreaterThan(readable - LOST);
        expect(error).toMatch(/invalid|incorrect|other bytes/);
      },
    );
  });

  it("stops in the middle of data that become very large, and closes its source", async () => {
    const zeros = Buffer.alloc(16 * 2 ** 20);
    const compressed = [zlib.gzipSync(zeros), ...(hasZstd ? [zlib.zstdCompressSync(zeros)] : [])];
    for (const bytes of compressed) {
      let largest = 0;
      let chunks = 0;
      for await (const chunk of decompressed(inChunks(bytes, 65_536))) {
        largest = Math.max(largest, chunk.length);
        if (++chunks === 20) break;
      }
      expect(largest).toBeLessThanOrEqual(2 ** 16);
      expect(isClosed).toBe(true);
    }
  });
});
