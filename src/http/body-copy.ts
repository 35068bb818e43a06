/** The bytes of a body that the reader of a copy may lag behind the client: 1 MiB. */
export const MAX_LAG_BYTES = 1024 * 1024;

/**
 * The bytes that an unread chunk counts in addition to its length. They bound the number of tiny
 * chunks.
 */
const CHUNK_OVERHEAD_BYTES = 128;

/**
 * A copy of a body, for a reader that may be slow. All chunks that a reader has not read yet become
 * one chunk, because decoding takes a fixed time for each chunk.
 */
export class BodyCopy {
  readonly stream = new ReadableStream<Uint8Array>(
    { pull: (controller) => this.#pull(controller), cancel: () => this.#close() },
    { highWaterMark: 0 },
  );
  #unread: Uint8Array[] = [];
  #unreadBytes = 0;
  #isClosed = false;
  #error: unknown;
  /**
   * Set while the reader waits. Passes a chunk to the reader, or ends the wait at the end of the
   * body.
   */
  #deliver: ((chunk?: Uint8Array) => void) | undefined;

  /** Copies the bytes, because the reader may change its chunks. */
  push(chunk: Uint8Array): void {
    if (this.#isClosed) return;
    if (this.#deliver) {
      this.#deliver(chunk.slice());
      this.#deliver = undefined;
      return;
    }
    this.#unreadBytes += chunk.byteLength + CHUNK_OVERHEAD_BYTES;
    // A single unread chunk is not a lag, however long it is, because the reader may be about to
    // read it.
    if (this.#unread.length > 0 && this.#unreadBytes > MAX_LAG_BYTES) {
      this.fail(new Error(`The reader lags behind by more than ${MAX_LAG_BYTES} bytes.`));
      return;
    }
    this.#unread.push(chunk.slice());
  }

  end(): void {
    this.#isClosed = true;
    this.#deliver?.();
  }

  /** After the reader has read all chunks up to now, the next read throws the error. */
  fail(error: unknown): void {
    if (!this.#isClosed) this.#error = error ?? new Error("The body has broken off.");
    this.end();
  }

  /** Drops all chunks, because nobody reads them. */
  #close(): void {
    this.#unread = [];
    this.end();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (this.#unread.length === 0 && !this.#isClosed) {
      const chunk = await new Promise<Uint8Array | undefined>((resolve) => {
        this.#deliver = resolve;
      });
      if (chunk) {
        controller.enqueue(chunk);
        return;
      }
    }
    const chunks = this.#unread;
    if (chunks.length === 0) {
      if (this.#error === undefined) controller.close();
      else controller.error(this.#error);
      return;
    }
    this.#unread = [];
    this.#unreadBytes = 0;
    controller.enqueue(joined(chunks));
  }
}

/** Returns the bytes of all chunks as one chunk. */
export function joined(chunks: readonly Uint8Array[]): Uint8Array {
  const [first] = chunks;
  if (first && chunks.length === 1) return first;
  const length = chunks.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}
