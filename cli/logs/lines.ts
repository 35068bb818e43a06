import { isAscii } from "node:buffer";
import type { LineParser, LogRequest } from "./log-request.ts";
import type { LogCounts } from "./progress.ts";

const NEWLINE = 10;
const RETURN = 13;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** How much of a line that is too long is kept for the report, in characters. */
const KEPT = 512;

/** Lines of one file, and how to read them. */
interface LineInput {
  /** The name of the file, for the report. */
  readonly file: string;
  readonly parser: LineParser;
  readonly counts: LogCounts;
  /** The maximum length of a line, in bytes. Of longer lines, the rest is not held in memory. */
  readonly maxBytes: number;
}

/**
 * Reads requests from the lines of one file, and counts the lines that are none. Bytes that are no UTF-8 become
 * U+FFFD.
 */
export class LineReader {
  readonly #input: LineInput;
  /** The start of the line that the next bytes continue. */
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  #isStart = true;
  #number = 0;
  #requests: LogRequest[] = [];

  constructor(input: LineInput) {
    this.#input = input;
  }

  /** Returns the requests that these bytes complete, in the order of the file. */
  push(chunk: Buffer): LogRequest[] {
    const end = chunk.lastIndexOf(NEWLINE);
    if (end === -1) this.#keep(chunk);
    else {
      this.#readLines(Buffer.concat([...this.#pending, chunk.subarray(0, end)]));
      this.#pending = [];
      this.#pendingBytes = 0;
      this.#keep(chunk.subarray(end + 1));
    }
    return this.#take();
  }

  /** Returns the request that the end of the file completes: the last line may have no line end. */
  end(): LogRequest[] {
    if (this.#pendingBytes > 0) this.#readLines(Buffer.concat(this.#pending));
    return this.#take();
  }

  #take(): LogRequest[] {
    const requests = this.#requests;
    this.#requests = [];
    return requests;
  }

  /** Keeps the start of a line, with up to two bytes more than allowed: one may belong to the line end. */
  #keep(bytes: Buffer): void {
    const kept = bytes.subarray(0, this.#input.maxBytes + 2 - this.#pendingBytes);
    if (kept.length === 0) return;
    this.#pending.push(kept);
    this.#pendingBytes += kept.length;
  }

  /** @param bytes whole lines, without the last line end */
  #readLines(bytes: Buffer): void {
    const text = this.#decode(bytes);
    let from = 0;
    while (from <= text.length) {
      const next = text.indexOf("\n", from);
      const end = next === -1 ? text.length : next;
      this.#readLine(text, from, text.charCodeAt(end - 1) === RETURN ? end - 1 : end);
      from = end + 1;
    }
  }

  #decode(bytes: Buffer): string {
    const hasMark = this.#isStart && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK);
    this.#isStart = false;
    const content = hasMark ? bytes.subarray(3) : bytes;
    // For ASCII, this is twice as fast as decoding UTF-8.
    return content.toString(isAscii(content) ? "latin1" : "utf8");
  }

  #readLine(text: string, from: number, to: number): void {
    const { parser, counts, maxBytes } = this.#input;
    this.#number++;
    // A character has at most three bytes for each unit of its length.
    if ((to - from) * 3 > maxBytes && Buffer.byteLength(text.slice(from, to)) > maxBytes) {
      this.#countBroken(`is longer than ${maxBytes / 1024} KiB`, text.slice(from, from + KEPT));
      return;
    }
    const content = parser.parse(text, from, to);
    if (typeof content === "object") {
      this.#requests.push(content);
      counts.lines++;
    } else if (content === undefined) {
      counts.ignored++;
      counts.lines++;
    } else {
      const line = text.slice(from, to);
      if (line.trim() !== "") this.#countBroken(content, line);
    }
  }

  #countBroken(reason: string, line: string): void {
    const { file, counts } = this.#input;
    counts.lines++;
    counts.addBroken(file, this.#number, reason, line);
  }
}
