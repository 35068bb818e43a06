/**
 * Gets the next piece of a body's text, and the number of bytes that were read for it.
 *
 * @returns whether to read on
 */
export type OnText = (text: string, bytes: number) => boolean;

/**
 * Reads a body to its end, or until `onText` returns false. A body that breaks off ends at that
 * point. Bytes that are not UTF-8 become U+FFFD, and a byte order mark at the start is omitted.
 * A piece contains only whole characters.
 */
export async function readPieces(body: ReadableStream<Uint8Array>, onText: OnText): Promise<void> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  try {
    let goesOn = true;
    while (goesOn) {
      const { done, value } = await reader.read();
      goesOn = onText(decoder.decode(value, { stream: !done }), value?.byteLength ?? 0) && !done;
    }
  } catch {
    // The client or the origin has ended the connection.
  }
  ignoreRest(reader);
}

/**
 * Cancels a body. Otherwise the runtime would keep the unread rest in memory. The function does not
 * wait, because the cancellation of a cloned body ends only when the other clone ends.
 */
export function ignoreRest(body: Pick<ReadableStream, "cancel">): void {
  body.cancel().catch(() => {});
}
