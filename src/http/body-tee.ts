/** The maximum number of bytes by which the reader of a copy may lag behind the client: 1 MiB. */
export const MAX_LAG_BYTES = 1024 * 1024;

/** The number of bytes that each unread chunk counts beside its length, to bound the number of tiny chunks. */
const CHUNK_OVERHEAD_BYTES = 128;

/**
 * A copy of a body, for a reader that may be slow. Unread chunks are merged into one, because decoding takes a fixed
 * time for each chunk.
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
  /** Set while the reader waits. Passes a chunk to the reader; without an argument, ends the body. */
  #deliver: ((chunk?: Uint8Array) => void) | undefined;

  /** Adds a copy of the bytes, because the reader may change its chunks. */
  push(chunk: Uint8Array): void {
    if (this.#isClosed) return;
    if (this.#deliver) {
      this.#deliver(chunk.slice());
      this.#deliver = undefined;
      return;
    }
    this.#unreadBytes += chunk.byteLength + CHUNK_OVERHEAD_BYTES;
    // A single unread chunk of any length is no lag, because the reader may be about to read it.
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

  /** Lets the reader read all chunks up to now, and then throws the error at the next read. */
  fail(error: unknown): void {
    if (!this.#isClosed) this.#error = error ?? new Error("The body has broken off.");
    this.end();
  }

  /** Drops all chunks, because no code reads them. */
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

function joined(chunks: readonly Uint8Array[]): Uint8Array {
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

// A raw body has the bytes that a server has sent, even if they are compressed. The client gets these bytes, and only
// the copies for settle functions are decoded. So the client gets even a body that cannot be decoded.

/** Whether a body is in Brotli. The runtime can decode such a body, but no code here can decode copies of it. */
export function isBrotli(headers: Headers): boolean {
  return encodingIn(headers) === "br";
}

/** @returns an empty text if the body has no encoding */
function encodingIn(headers: Headers): string {
  const encoding = headers.get("content-encoding")?.trim().toLowerCase() ?? "";
  return encoding === "identity" ? "" : encoding;
}

/**
 * The maximum number of encoded bytes that are decoded at once. Decoded, they can be about a thousand times as many,
 * which the decoder keeps until they are read.
 */
const MAX_DECODED_AT_ONCE = 16 * 1024;

/** The maximum length of a decoded chunk. */
const MAX_CHUNK_BYTES = 64 * 1024;

/**
 * Decodes a body in gzip while it is read. `DecompressionStream` does not slow down its writer, so it gets more bytes
 * only when all decoded bytes have been read.
 *
 * @param onFault called if the body cannot be decoded, or breaks off
 */
function gunzip(
  encoded: ReadableStream<Uint8Array>,
  onFault: () => void,
): ReadableStream<Uint8Array> {
  const source = encoded.getReader();
  const decoder = new DecompressionStream("gzip");
  const writer = decoder.writable.getWriter();
  const reader = decoder.readable.getReader({ mode: "byob" });
  let rest = new Uint8Array();
  let hasEnded = false;

  /** Writes some of the encoded bytes, or the end. After a fault, the next read is rejected too. */
  async function writeMore(): Promise<void> {
    while (rest.length === 0) {
      const { done, value } = await source.read();
      if (done) {
        hasEnded = true;
        await writer.close();
        return;
      }
      rest = value as typeof rest;
    }
    const next = rest.subarray(0, MAX_DECODED_AT_ONCE);
    rest = rest.subarray(next.length);
    await writer.write(next);
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          // By default, a chunk has 4 KiB. Reading many chunks takes long.
          const read = reader.read(new Uint8Array(MAX_CHUNK_BYTES));
          // If writing fails, no other code handles this promise.
          read.catch(() => {});
          let result: Awaited<typeof read> | undefined;
          while (!result) {
            const pause = scheduler.wait(0) as Promise<undefined>;
            result = await (hasEnded ? read : Promise.race([read, pause]));
            if (!result) await writeMore();
          }
          if (result.done) controller.close();
          else controller.enqueue(result.value);
        } catch (error) {
          onFault();
          controller.error(error);
          await source.cancel(error).catch(() => {});
        }
      },
      cancel: (reason) => source.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}

/** Whether the runtime decodes the body of a response with these headers. */
function isEncoded(headers: Headers): boolean {
  return ["gzip", "br"].includes(encodingIn(headers));
}

/** Whether a body is empty although its headers name an encoding. Such a body cannot be decoded. */
export function isEmptyEncoded({ headers }: Response): boolean {
  return isEncoded(headers) && /^0+$/.test(headers.get("content-length") ?? "");
}

/** The maximum numbers of chunks and of bytes that are merged into one chunk. */
const MAX_MERGED_CHUNKS = 100;
const MAX_MERGED_BYTES = 16 * 1024;

/**
 * The stream for the client, which also writes to the copies. The stream has a source in JavaScript, so the runtime
 * cancels it at once when the client hangs up. It would cancel an identity stream only at the origin's next chunk.
 *
 * To send a chunk of a JavaScript source is much more work for the runtime than to read a chunk. So chunks that follow
 * each other within two milliseconds are merged. A chunk after a pause does not wait.
 */
class PassThrough {
  readonly stream: ReadableStream<Uint8Array>;
  readonly started: Promise<void>;
  readonly ended: Promise<boolean>;
  /** The number of times that the stream was read. */
  reads = 0;
  readonly #copies: readonly BodyCopy[];
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #onStart: () => void;
  readonly #onEnd: (isWhole: boolean) => void;
  /** The chunks that have been read but not passed on yet. */
  #held: Uint8Array[] = [];
  /** A read whose chunk has not been used yet. */
  #next: ReturnType<ReadableStreamDefaultReader<Uint8Array>["read"]> | undefined;
  #readAt = 0;
  #isCancelled = false;

  constructor(body: ReadableStream<Uint8Array>, copies: readonly BodyCopy[]) {
    const { promise: started, resolve: onStart } = Promise.withResolvers<void>();
    const { promise: ended, resolve: onEnd } = Promise.withResolvers<boolean>();
    this.started = started;
    this.ended = ended;
    this.#onStart = onStart;
    this.#onEnd = onEnd;
    this.#copies = copies;
    this.#reader = body.getReader();
    this.stream = new ReadableStream<Uint8Array>(
      { pull: (controller) => this.#pull(controller), cancel: (reason) => this.cancel(reason) },
      { highWaterMark: 0 },
    );
  }

  cancel(reason?: unknown): Promise<void> {
    this.#isCancelled = true;
    if (this.#held.length > 0) this.#passOn();
    this.#fail(reason);
    return this.#reader.cancel(reason);
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.reads += 1;
    try {
      if (this.#isCancelled) throw new Error("The body was cancelled.");
      const { done, value } = await (this.#next ?? this.#reader.read());
      this.#next = undefined;
      if (!done) {
        this.#held.push(bytesOf(value));
        const isBurst = Date.now() - this.#readAt <= 1;
        if (isBurst) await this.#readMore(value.byteLength);
        this.#readAt = Date.now();
        const isSingle = this.#held.length === 1;
        const bytes = this.#passOn();
        controller.enqueue(isSingle ? value : bytes);
        this.#onStart();
      } else {
        controller.close();
        for (const copy of this.#copies) copy.end();
        this.#onStart();
        this.#onEnd(true);
      }
    } catch (error) {
      this.#fail(error);
      controller.error(error);
    }
  }

  /** Reads the chunks that arrive within a millisecond. */
  async #readMore(length: number): Promise<void> {
    const pause = scheduler.wait(1);
    while (length < MAX_MERGED_BYTES && this.#held.length < MAX_MERGED_CHUNKS) {
      this.#next = this.#reader.read();
      // The next pull handles an error.
      const result = await Promise.race([this.#next, pause]).catch(() => {});
      if (!ArrayBuffer.isView(result?.value)) break;
      this.#next = undefined;
      this.#held.push(bytesOf(result.value));
      length += result.value.byteLength;
    }
  }

  /** Passes the chunks on to the copies. Returns them as one chunk. */
  #passOn(): Uint8Array {
    const [first = new Uint8Array()] = this.#held;
    const bytes = this.#held.length > 1 ? joined(this.#held) : first;
    this.#held = [];
    for (const copy of this.#copies) copy.push(bytes);
    return bytes;
  }

  #fail(error: unknown): void {
    for (const copy of this.#copies) copy.fail(error);
    this.#onStart();
    this.#onEnd(false);
  }
}

/** Returns the bytes of a chunk. The streams of apps may have other chunks than Uint8Array. */
function bytesOf(chunk: ArrayBuffer | ArrayBufferView): Uint8Array {
  return ArrayBuffer.isView(chunk)
    ? new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    : new Uint8Array(chunk);
}

export interface TeedResponse {
  /** The response for the client. The readers of copies do not delay its body. */
  readonly response: Response;
  /**
   * One response for each reader, with the same head. Its body ends when the client's body ends. A read throws an
   * error if the client's body breaks off, or if the reader lags behind by more than `MAX_LAG_BYTES`.
   */
  readonly copies: readonly Response[];
  /**
   * Resolves when the first bytes have been passed on to the client. Later work for copies cannot delay these bytes.
   */
  readonly started: Promise<void>;
  /** Resolves to true when the body ends, and to false when it breaks off. Never rejects. */
  readonly ended: Promise<boolean>;
  /** Resolves when the body has bytes for the client, or before. */
  readonly offered: Promise<void>;
  /** Whether the runtime has begun to read the body for the client. */
  isRead(): boolean;
  /** Ends the body, for the client, for the copies, and at its source. */
  cancel(): void;
  /** Whether a copy could not be decoded up to now. */
  hasFault(): boolean;
}

export interface TeeOptions {
  /** Whether Content-Length is certainly the length of the body. */
  readonly isLengthExact: boolean;
  /** Whether the body has the bytes that the server has sent, even if they are compressed. */
  readonly isRaw: boolean;
}

/**
 * Copies the body of a response while the client receives it. A chunk is read from the origin when the client is
 * ready for this chunk. So a slow client slows down the origin, as without copies, and no bytes are buffered for the
 * client.
 *
 * The client gets a raw body unchanged, and only the copies are decoded. The runtime decodes any other compressed
 * body when it is read, and encodes it again for the client.
 *
 * @param count the number of copies
 * @returns undefined if a response of this kind cannot be copied: a WebSocket, or a status that `new Response`
 * refuses
 */
export function teeResponse(
  response: Response,
  count: number,
  { isLengthExact, isRaw }: TeeOptions,
): TeedResponse | undefined {
  const { status, statusText, headers } = response;
  if (status < 200 || status > 599) return undefined;
  const copyHead = { status, statusText, headers };
  const copies = Array.from({ length: count }, () => new BodyCopy());
  const unchanged = (bodies: readonly (ReadableStream<Uint8Array> | null)[], isRead: boolean) => ({
    response,
    copies: bodies.map((each) => new Response(each, copyHead)),
    started: Promise.resolve(),
    ended: Promise.resolve(isRead),
    offered: Promise.resolve(),
    isRead: () => true,
    cancel: () => {},
    hasFault: () => false,
  });
  if (!response.body || response.bodyUsed || isEmptyEncoded(response)) {
    return unchanged(Array(count).fill(null), true);
  }
  // A part of an encoded body may begin anywhere, so it cannot be decoded.
  const isReadable = !isEncoded(headers) || (status !== 206 && !(isRaw && isBrotli(headers)));
  if (!isReadable) {
    for (const copy of copies) copy.fail(new Error("The body cannot be decoded."));
    if (!isRaw) {
      return unchanged(
        copies.map(({ stream }) => stream),
        false,
      );
    }
  }
  const through = new PassThrough(response.body, isReadable ? copies : []);
  const { stream, started, ended } = through;
  const isLengthKept = isLengthExact && (isRaw || !headers.has("content-encoding"));
  const passed = isLengthKept ? withFixedLength(stream, headers) : stream;
  // A stream with a fixed length reads the first chunk even if nobody reads the response.
  const ownReads = passed === stream ? 0 : 1;
  // If no code here decodes the encoding, a settle function cannot read even a complete copy.
  let hasFault = !isReadable || (!isEncoded(headers) && encodingIn(headers) !== "");
  const decoded = ({ stream: copy }: BodyCopy) => {
    if (!isRaw || !isReadable || !isEncoded(headers)) return copy;
    return gunzip(copy, () => {
      hasFault = true;
    });
  };
  return {
    // With the response as the second argument, a body that an app has encoded is not encoded again.
    response: new Response(passed, response),
    copies: copies.map((copy) => new Response(decoded(copy), copyHead)),
    started,
    ended,
    offered: ownReads > 0 ? started : Promise.resolve(),
    isRead: () => through.reads > ownReads,
    cancel: () => void through.cancel().catch(() => {}),
    hasFault: () => hasFault,
  };
}

/** Returns the stream with a fixed length, so that the response keeps its Content-Length. */
function withFixedLength(
  stream: ReadableStream<Uint8Array>,
  headers: Headers,
): ReadableStream<Uint8Array> {
  const length = headers.get("content-length") ?? "";
  if (!/^\d{1,15}$/.test(length)) return stream;
  const { readable, writable } = new FixedLengthStream(Number(length));
  // If the client hangs up, `pipeTo` cancels the stream and rejects. No code needs this rejection.
  stream.pipeTo(writable).catch(() => {});
  return readable;
}
