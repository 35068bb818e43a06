const NEWLINE = 10;
const RETURN = 13;
/** A word of four newlines. */
const NEWLINES = 0x0a0a0a0a;

/** A copy of a part of a log, which rows refer to. */
export class Chunk {
  /** The number of rows that refer to it. */
  rows = 0;
  length = 0;
  readonly bytes: Buffer;
  /** The same memory. Reading four bytes at once makes finding newlines faster than Buffer.indexOf does. */
  readonly #words: Int32Array;

  /** @param size a multiple of 4 */
  constructor(size: number) {
    this.bytes = Buffer.allocUnsafeSlow(size);
    this.#words = new Int32Array(this.bytes.buffer, 0, size / 4);
  }

  /** Replaces the content. */
  set(content: Buffer): void {
    content.copy(this.bytes);
    this.length = content.length;
  }

  /** Returns the index of the next newline, or the length if there is none. @param from an index below the length */
  newlineFrom(from: number): number {
    const { bytes, length } = this;
    const words = this.#words;
    let index = from;
    for (; (index & 3) !== 0; index++) if (bytes[index] === NEWLINE) return index;
    let word = index >> 2;
    const last = length >> 2;
    for (; word < last; word++) {
      const difference = (words[word] as number) ^ NEWLINES;
      // Not 0 if one of the four bytes is 0.
      if (((difference - 0x01010101) & ~difference & 0x80808080) !== 0) break;
    }
    index = word << 2;
    while (index < length && bytes[index] !== NEWLINE) index++;
    return index;
  }

  /** Returns a line as text. @param to the index of its newline */
  lineAt(from: number, to: number): string {
    const isWindows = to > from && this.bytes[to - 1] === RETURN;
    return this.bytes.toString("utf8", from, isWindows ? to - 1 : to);
  }
}
