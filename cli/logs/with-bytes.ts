/**
 * Adds bytes of the input until there are enough.
 *
 * @param start bytes that have been read already
 * @returns fewer bytes only if the input has ended
 */
export async function withBytes(
  start: Buffer,
  length: number,
  input: AsyncIterator<Buffer>,
): Promise<Buffer> {
  if (start.length >= length) return start;
  // Reading overwrites the bytes before.
  let bytes = Buffer.from(start);
  while (bytes.length < length) {
    const { value, done } = await input.next();
    if (done) break;
    bytes = Buffer.concat([bytes, value]);
  }
  return bytes;
}
