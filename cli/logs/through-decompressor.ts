import type { Transform } from "node:stream";

/** A decompressor of Node. */
export type Decompressor = Transform & {
  /** The number of compressed bytes that were used. */
  readonly bytesWritten: number;
};

/**
 * Decompresses raw deflate data or one zstd frame. Writes the next bytes only when all decompressed ones have been read:
 * so a small input that becomes very large needs little memory, and an error in the input does not discard
 * what was decompressed before it, as a pipeline would.
 *
 * @param first the first bytes
 * @param input the bytes after them
 * @returns the bytes after the end of the compressed data that have been read already
 */
export async function* throughDecompressor(
  decompressor: Decompressor,
  first: Buffer,
  input: AsyncIterator<Buffer>,
): AsyncGenerator<Buffer, Buffer> {
  const state = observed(decompressor);
  let written = first;
  let writtenBefore = 0;
  state.write(first);
  try {
    for (;;) {
      const chunk = decompressor.read();
      // Bytes are left over only after the end of the compressed data.
      const used = decompressor.bytesWritten - writtenBefore;
      if (chunk !== null) yield chunk;
      else if (state.error) throw state.error;
      else if (state.isEnded) return written.subarray(used);
      else if (state.isWriting || state.isEnding) await state.change();
      else {
        if (used < written.length) return written.subarray(used);
        const { value, done } = await input.next();
        writtenBefore += written.length;
        written = done ? Buffer.alloc(0) : value;
        if (done) state.end();
        else state.write(value);
      }
    }
  } finally {
    decompressor.destroy();
  }
}

/** Follows what a decompressor does. */
function observed(decompressor: Decompressor) {
  let wake = () => {};
  let hasChanged = false;
  const onChange = () => {
    hasChanged = true;
    wake();
  };
  const state = {
    error: undefined as Error | undefined,
    isEnded: false,
    isWriting: false,
    isEnding: false,
    write(bytes: Buffer): void {
      state.isWriting = true;
      decompressor.write(bytes, () => {
        state.isWriting = false;
        onChange();
      });
    },
    end(): void {
      state.isEnding = true;
      decompressor.end();
    },
    /** Waits for the next change. */
    async change(): Promise<void> {
      if (!hasChanged) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      hasChanged = false;
    },
  };
  decompressor.on("readable", onChange);
  decompressor.on("end", () => {
    state.isEnded = true;
    onChange();
  });
  decompressor.on("error", (error) => {
    state.error = error;
    onChange();
  });
  return state;
}
