import zlib from "node:zlib";
import { throughDecompressor } from "./through-decompressor.ts";
import { withBytes } from "./with-bytes.ts";

const CHUNK_BYTES = 64 * 1024;

const DEFLATE = 8;
/** The bits of the header's flags. */
const HAS_CHECKSUM = 2;
const HAS_EXTRA = 4;
const HAS_NAME = 8;
const HAS_COMMENT = 16;

const HEADER_BYTES = 10;
const TRAILER_BYTES = 8;
/** The maximum length of a name or a comment, in bytes. Real ones have less than 300. */
const MAX_TEXT_BYTES = 64 * 1024;

const ENDS_EARLY = "unexpected end of file";

/**
 * Decompresses one member of a gzip file (RFC 1952). Node's own reader of gzip would discard up to 64 KiB of
 * correct text before a wrong checksum, and before other bytes after the member.
 *
 * @param first the first bytes
 * @param input the bytes after them
 * @returns the bytes after the member that have been read already
 */
export async function* gzipMember(
  first: Buffer,
  input: AsyncIterator<Buffer>,
): AsyncGenerator<Buffer, Buffer> {
  const data = await afterHeader(first, input);
  const inflated = throughDecompressor(
    zlib.createInflateRaw({ chunkSize: CHUNK_BYTES }),
    data,
    input,
  );
  let checksum = 0;
  let length = 0;
  let rest: Buffer;
  try {
    for (;;) {
      const { value, done } = await inflated.next();
      if (done) {
        rest = value;
        break;
      }
      checksum = zlib.crc32(value, checksum);
      length = (length + value.length) % 2 ** 32;
      yield value;
    }
  } finally {
    await inflated.return(Buffer.alloc(0));
  }
  const trailer = await withBytes(rest, TRAILER_BYTES, input);
  if (trailer.length < TRAILER_BYTES) throw new Error(ENDS_EARLY);
  if (trailer.readUInt32LE() !== checksum || trailer.readUInt32LE(4) !== length) {
    throw new Error("its checksum is wrong, so some of it may be damaged");
  }
  return trailer.subarray(TRAILER_BYTES);
}

/** Returns the bytes after the header. */
async function afterHeader(first: Buffer, input: AsyncIterator<Buffer>): Promise<Buffer> {
  let bytes = await withBytes(first, HEADER_BYTES, input);
  const skip = async (length: number) => {
    bytes = await withBytes(bytes, length, input);
    if (bytes.length < length) throw new Error(ENDS_EARLY);
    bytes = bytes.subarray(length);
  };
  const [, , method = 0, flags = 0] = bytes;
  await skip(HEADER_BYTES);
  if (method !== DEFLATE) throw new Error("it is a gzip file with an unknown method");
  if (flags & HAS_EXTRA) {
    bytes = await withBytes(bytes, 2, input);
    await skip(2 + (bytes.length < 2 ? 0 : bytes.readUInt16LE()));
  }
  for (const flag of [HAS_NAME, HAS_COMMENT]) {
    if (!(flags & flag)) continue;
    for (let length = 1; !bytes.includes(0); length = bytes.length + 1) {
      if (length > MAX_TEXT_BYTES) throw new Error("it has no end of its name or comment");
      const before = bytes.length;
      bytes = await withBytes(bytes, before + 1, input);
      if (bytes.length === before) throw new Error(ENDS_EARLY);
    }
    await skip(bytes.indexOf(0) + 1);
  }
  if (flags & HAS_CHECKSUM) await skip(2);
  return bytes;
}
