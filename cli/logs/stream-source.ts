import type { ByteSource, Head } from "./byte-source.ts";
import { decompressed } from "./decompressed.ts";
import { beforeAbort } from "./until-aborted.ts";

/**
 * How long the first bytes are awaited after the first line, in milliseconds: `tail -f` writes a few lines, and may
 * then write nothing for hours.
 */
const PAUSE_MS = 1000;

const NEWLINE = 10;

/**
 * A stream. What `head` reads is kept, because a stream can be read only once.
 *
 * @param signal ends `head`, although the next bytes have not come
 */
export function streamSource(
  name: string,
  stream: AsyncIterable<Buffer>,
  signal: AbortSignal | undefined,
): ByteSource {
  let onRead = (_bytes: number) => {};
  let readBytes = 0;
  const whole = decompressed(
    counted(stream, (bytes) => {
      readBytes += bytes;
      onRead(bytes);
    }),
  );
  const kept: Buffer[] = [];
  /** The next chunk, while it is awaited. */
  let next: Promise<IteratorResult<Buffer>> | undefined;
  const close = async () => {
    const closed = whole.return(undefined);
    // The stream closes only after its next bytes, which may never come.
    if (next === undefined) await closed;
    else closed.catch(() => {});
  };
  return {
    name,
    size: undefined,
    async head(bytes): Promise<Head> {
      let length = 0;
      let timeoutMs: number | undefined;
      while (length < bytes) {
        next = whole.next();
        // An error after the first bytes is for the reader of `chunks`.
        next.catch(() => {});
        const result = await beforeAbort(next, { signal, timeoutMs }).catch((error) => {
          if (length === 0) throw error;
        });
        if (result === undefined) break;
        if (result.done) return { bytes: Buffer.concat(kept), isWhole: true };
        // The source overwrites the chunk.
        kept.push(Buffer.from(result.value));
        length += result.value.length;
        if (result.value.includes(NEWLINE)) timeoutMs = PAUSE_MS;
        next = undefined;
      }
      return { bytes: Buffer.concat(kept), isWhole: false };
    },
    async *chunks(onReadLater) {
      onReadLater(readBytes);
      onRead = onReadLater;
      try {
        yield* kept.splice(0);
        for (;;) {
          next ??= whole.next();
          const result = await next;
          next = undefined;
          if (result.done) return;
          yield result.value;
        }
      } finally {
        await close();
      }
    },
    close,
  };
}

/** Passes on chunks, and calls a function with the length of each. */
export async function* counted(
  source: AsyncIterable<Buffer>,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of source) {
    onRead(chunk.length);
    yield chunk;
  }
}
