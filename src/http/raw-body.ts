// Raw bodies: the bytes that a server has sent, even if they are compressed. The client gets these
// bytes, and only the copies for settle functions are decoded. So the client gets a body that cannot
// be decoded as the server has sent it.

/**
 * Asks for gzip at most, because `DecompressionStream` decodes no other encoding that servers use.
 * Otherwise a client could choose an encoding that no function can read.
 */
export function acceptGzip(request: Request): Request {
  const accepted = request.headers.get("accept-encoding");
  if (accepted !== null) {
    const gzip = accepted.split(",").filter((each) => /^\s*gzip\b/i.test(each));
    request.headers.set("accept-encoding", gzip.join(",") || "identity");
  }
  return request;
}

/** Whether a raw body cannot be decoded for copies, although the runtime could decode it. */
export function isBrotli(headers: Headers): boolean {
  return /^\s*br\s*$/i.test(headers.get("content-encoding") ?? "");
}

/**
 * The encoded bytes that are decoded at once. They can become about a thousand times as many bytes,
 * which the decoder keeps until they are read.
 */
const MAX_DECODED_AT_ONCE = 16 * 1024;

/** The maximum length of a decoded chunk. */
const MAX_CHUNK_BYTES = 64 * 1024;

/**
 * Decodes a body in gzip while it is read. `DecompressionStream` does not slow down its writer, so
 * this stream writes to it only when there is nothing more to read.
 *
 * @param onFault called if the body cannot be decoded, or breaks off
 */
export function gunzip(
  encoded: ReadableStream<Uint8Array>,
  onFault: () => void,
): ReadableStream<Uint8Array> {
  const source = encoded.getReader();
  const decoder = new DecompressionStream("gzip");
  const [writer, reader] = [
    decoder.writable.getWriter(),
    decoder.readable.getReader({ mode: "byob" }),
  ];
  let rest = new Uint8Array();
  let hasEnded = false;

  /** Writes some of the encoded bytes, or the end. A fault rejects the next read, too. */
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
          // By default, a chunk has 4 KiB, and reading many chunks takes long.
          const read = reader.read(new Uint8Array(MAX_CHUNK_BYTES));
          // If writing fails, nothing else handles this promise.
          read.catch(() => {});
          let result: Awaited<typeof read> | undefined;
          while (!result) {
            result = await (hasEnded ? read : Promise.race([read, waitBriefly()]));
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

/** Waits until a read has been answered, if there is something to read. */
async function waitBriefly(): Promise<undefined> {
  await scheduler.wait(0);
}
