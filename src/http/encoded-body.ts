// Bodies with a Content-Encoding. By default, the runtime decodes such a body when a program reads
// it, and encodes it again for the client. If decoding fails then, the client's body breaks off.

/** Whether the runtime decodes the body of a response with these fields. */
export function isEncoded(headers: Headers): boolean {
  return /^\s*(gzip|br)\s*$/i.test(headers.get("content-encoding") ?? "");
}

/** Whether a body is empty although its fields name an encoding. Such a body cannot be decoded. */
export function isEmptyEncoded({ headers }: Response): boolean {
  return isEncoded(headers) && /^0+$/.test(headers.get("content-length") ?? "");
}

/** The maximum length of an encoded body that is decoded before the client gets its first bytes. */
const MAX_SHORT_BYTES = 64 * 1024;
const MAX_SHORT_DECODED_BYTES = 1024 * 1024;

/**
 * Returns the decoded body of a response. Waits at most `maxWaitMs` for the first bytes of a long
 * body, or for the end of a short body.
 *
 * @returns undefined if the body cannot be decoded. The response can then be sent unchanged
 */
export async function decodableBody(
  response: Response,
  maxWaitMs: number,
): Promise<ReadableStream<Uint8Array> | undefined> {
  // Status 206: this part may begin in the middle of the encoded body, so it cannot be decoded.
  if (response.status === 206) return undefined;
  const isShort =
    Number(response.headers.get("content-length") ?? Number.POSITIVE_INFINITY) <= MAX_SHORT_BYTES;
  const enough = isShort ? MAX_SHORT_DECODED_BYTES : 1;
  // Both bodies get the encoded bytes, and only the body of the clone is decoded.
  const reader = (response.clone().body as ReadableStream<Uint8Array>).getReader();
  const reads: Promise<ReadableStreamReadResult<Uint8Array>>[] = [];
  const { promise: timeout, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, maxWaitMs);
  try {
    for (let length = 0; length < enough; ) {
      const read = reader.read();
      reads.push(read);
      const result = await Promise.race([read, timeout]);
      if (!result || (result.done && length > 0)) break;
      if (result.done) return undefined;
      length += result.value.byteLength;
    }
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
  // From now on, only the decoded body is read, so the other body needs no buffer.
  response.body?.cancel().catch(() => {});
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { done, value } = await (reads.shift() ?? reader.read());
        if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
}
