import { type FileHandle, open } from "node:fs/promises";

const CHUNK_BYTES = 256 * 1024;

/**
 * Reads a file into two buffers in turn: while the bytes in one are used, the next ones are read into the other. A
 * stream would leave each chunk to the garbage collector.
 */
export async function* readAhead(name: string): AsyncGenerator<Buffer> {
  const file = await open(name);
  let reading: Promise<Buffer> | undefined;
  try {
    let buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
    let other = Buffer.allocUnsafeSlow(CHUNK_BYTES);
    reading = readInto(file, buffer);
    for (;;) {
      const chunk = await reading;
      if (chunk.length === 0) return;
      [buffer, other] = [other, buffer];
      reading = readInto(file, buffer);
      // An error is thrown when the next bytes are needed.
      reading.catch(() => {});
      yield chunk;
    }
  } finally {
    await reading?.catch(() => {});
    await file.close();
  }
}

async function readInto(file: FileHandle, buffer: Buffer): Promise<Buffer> {
  const { bytesRead } = await file.read(buffer, 0, buffer.length);
  return buffer.subarray(0, bytesRead);
}
