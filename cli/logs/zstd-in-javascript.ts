import { Decompress } from "fzstd";

/**
 * How many bytes are decompressed at once. They become at most 32 MiB, because the smallest block has 4 bytes and
 * contains up to 128 KiB.
 */
const SLICE_BYTES = 1024;

/**
 * Decompresses the frames of a zstd file, for versions of Node that cannot.
 *
 * @param first the first bytes, at least 4
 * @param input the bytes after them
 */
export async function* zstdInJavaScript(
  first: Buffer,
  input: AsyncIterator<Buffer>,
): AsyncGenerator<Buffer> {
  const ready: Buffer[] = [];
  const decompressor = new Decompress((chunk) => {
    // The decompressor may use the memory again.
    ready.push(Buffer.from(chunk));
  });
  refuseLargeWindow(first);
  let chunk: Buffer | undefined = first;
  while (chunk !== undefined) {
    for (let from = 0; from < chunk.length; from += SLICE_BYTES) {
      // The decompressor keeps the slice.
      const slice = Buffer.from(chunk.subarray(from, from + SLICE_BYTES));
      yield* outputOf(() => decompressor.push(slice), ready);
    }
    const { value, done }: IteratorResult<Buffer> = await input.next();
    chunk = done ? undefined : value;
  }
  yield* outputOf(() => decompressor.push(new Uint8Array(0), true), ready);
}

/** Yields what an action adds to a list, also if it fails in the end. */
function* outputOf(act: () => void, ready: Buffer[]): Generator<Buffer> {
  let failure: unknown;
  try {
    act();
  } catch (error) {
    failure = error;
  }
  yield* ready.splice(0);
  if (failure !== undefined) throw failure;
}

const MAGIC = 0xfd2fb528;
/** The window of the frame has the size of its content, which is small. */
const SINGLE_SEGMENT = 0x20;
/** The exponent of 128 MiB, in the form of a frame's header: 2¹⁷ KiB. Node has the same maximum. */
const MAX_WINDOW_EXPONENT = 17;

/** The decompressor allocates up to 2 GiB as soon as the header of a frame demands it. */
function refuseLargeWindow(start: Buffer): void {
  if (start.length < 6 || start.readUInt32LE() !== MAGIC) return;
  const hasWindow = ((start[4] ?? 0) & SINGLE_SEGMENT) === 0;
  if (!hasWindow || (start[5] ?? 0) >> 3 <= MAX_WINDOW_EXPONENT) return;
  throw new Error("a zstd frame needs more than 128 MiB of memory");
}
