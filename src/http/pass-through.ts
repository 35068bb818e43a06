import { type BodyCopy, joined } from "./body-copy.ts";

/** The chunks and bytes that are merged into one chunk. */
const MAX_MERGED_CHUNKS = 100;
const MAX_MERGED_BYTES = 16 * 1024;

/**
 * Returns the stream for the client, which also writes to the copies. When the client hangs up, the
 * runtime cancels such a stream at once, even if the origin sends nothing. An identity stream would
 * be cancelled only at the origin's next chunk.
 *
 * For the runtime, writing a chunk of such a stream is much more work than reading one. So chunks
 * that follow each other within two milliseconds are merged. A chunk after a pause does not wait.
 */
export function passThrough(
  body: ReadableStream<Uint8Array>,
  copies: readonly BodyCopy[],
  {
    onStart,
    onEnd,
  }: { readonly onStart: () => void; readonly onEnd: (isComplete: boolean) => void },
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  /** The chunks that have been read, but not passed on. */
  let held: Uint8Array[] = [];
  /** A read that has begun, but whose chunk has not been taken. */
  let next: ReturnType<typeof reader.read> | undefined;
  let readAt = 0;
  /** Passes the chunks on to the copies, and returns them as one. */
  const passOn = () => {
    const [first = new Uint8Array()] = held;
    const bytes = held.length > 1 ? joined(held) : first;
    held = [];
    for (const copy of copies) copy.push(bytes);
    return bytes;
  };
  const fail = (error: unknown) => {
    for (const copy of copies) copy.fail(error);
    onStart();
    onEnd(false);
  };
  /** Reads the chunks that arrive within a millisecond. */
  async function readMore(length: number): Promise<void> {
    const pause = scheduler.wait(1);
    while (length < MAX_MERGED_BYTES && held.length < MAX_MERGED_CHUNKS) {
      next = reader.read();
      // The next pull handles an error.
      const result = await Promise.race([next, pause]).catch(() => {});
      if (!ArrayBuffer.isView(result?.value)) break;
      next = undefined;
      held.push(bytesOf(result.value));
      length += result.value.byteLength;
    }
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await (next ?? reader.read());
          next = undefined;
          if (!done) {
            held.push(bytesOf(value));
            const isBurst = Date.now() - readAt <= 1;
            if (isBurst) await readMore(value.byteLength);
            readAt = Date.now();
            const isSingle = held.length === 1;
            const bytes = passOn();
            controller.enqueue(isSingle ? value : bytes);
          } else {
            controller.close();
            for (const copy of copies) copy.end();
            onEnd(true);
          }
          onStart();
        } catch (error) {
          fail(error);
          controller.error(error);
        }
      },
      cancel(reason) {
        if (held.length > 0) passOn();
        fail(reason);
        return reader.cancel(reason);
      },
    },
    { highWaterMark: 0 },
  );
}

/** Returns the bytes of a chunk. The streams of apps may also have other chunks than Uint8Array. */
function bytesOf(chunk: ArrayBuffer | ArrayBufferView): Uint8Array {
  return ArrayBuffer.isView(chunk)
    ? new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    : new Uint8Array(chunk);
}
