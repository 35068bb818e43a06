/** The bytes of one log, decompressed. */
export interface ByteSource {
  /** The name as the user has written it. */
  readonly name: string;
  /** The size as stored, in bytes; undefined for a stream. */
  readonly size: number | undefined;
  /**
   * Reads the first bytes. `chunks` returns them again.
   *
   * @param bytes how many are enough; a stream that pauses after its first line returns fewer
   * @throws an error before the first byte
   */
  head(bytes: number): Promise<Head>;
  /**
   * Reads all bytes from the start. Call it once. A chunk is valid until the next one is read.
   *
   * @param onRead receives the number of stored bytes that were read
   */
  chunks(onRead: (bytes: number) => void): AsyncGenerator<Buffer>;
  /** Closes a source that is not read to its end. */
  close(): Promise<void>;
}

/** The first bytes of a log. */
export interface Head {
  readonly bytes: Buffer;
  /** Whether there are no more. */
  readonly isWhole: boolean;
}
