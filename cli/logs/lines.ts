import { isAscii } from "node:buffer";
import type { LineParser, LogRequest } from "./log-request.ts";
import type { LogCounts } from "./progress.ts";

const NEWLINE = 10;
const RETURN = 13;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** How much of a line that is too long is kept for the report, in bytes. */
const KEPT_BYTES = 512;

/** Receives the lines of a file. Lines have no line ends. */
interface LineSink {
  /** @param text a text with many lines, of which the line is the part between two indices */
  line(text: string, from: number, to: number): void;
  /** @param start the first characters of a line that is longer than allowed */
  overlong(start: string): void;
}

/** Splits the bytes of a file into lines of UTF-8. Bytes that are no UTF-8 become U+FFFD. */
export class LineSplitter {
  readonly #sink: LineSink;
  readonly #maxBytes: number;
  /** The start of the line that the next bytes continue. */
  #pending: Buffer[] = [];
  #pendingBytes = 0;
  /** The start of a line that is too long, while its other bytes are skipped. */
  #overlong: string | undefined;
  #isStart = true;

  /** @param maxBytes the maximum length of a line; longer lines are not held in memory */
  constructor(maxBytes: number, sink: LineSink) {
    this.#maxBytes = maxBytes;
    this.#sink = sink;
  }

  /** @param chunk the next bytes; may be overwritten after the call */
  push(chunk: Buffer): void {
    const from = this.#overlong === undefined ? 0 : this.#skip(chunk);
    const end = chunk.lastIndexOf(NEWLINE);
    if (end >= from) {
      this.#split(chunk.subarray(from, end));
      this.#keep(chunk.subarray(end + 1));
    } else this.#keep(chunk.subarray(from));
  }

  /** Call it after the last bytes. The last line may have no line end. */
  end(): void {
    if (this.#overlong !== undefined) this.#sink.overlong(this.#overlong);
    else if (this.#pendingBytes > 0) this.#split(Buffer.alloc(0));
    this.#overlong = undefined;
  }

  /** Skips the rest of a line that is too long. Returns the index after it. */
  #skip(chunk: Buffer): number {
    const end = chunk.indexOf(NEWLINE);
    if (end === -1) return chunk.length;
    this.#sink.overlong(this.#overlong ?? "");
    this.#overlong = undefined;
    return end + 1;
  }

  #keep(rest: Buffer): void {
    if (rest.length === 0) return;
    this.#pending.push(Buffer.from(rest));
    this.#pendingBytes += rest.length;
    if (this.#pendingBytes <= this.#maxBytes) return;
    this.#overlong = Buffer.concat(this.#pending).toString("utf8", 0, KEPT_BYTES);
    this.#pending = [];
    this.#pendingBytes = 0;
  }

  /** @param bytes whole lines without the last line end */
  #split(bytes: Buffer): void {
    if (this.#pendingBytes === 0) {
      this.#splitText(this.#decode(bytes));
      return;
    }
    // Copying only the first line, instead of all lines, leaves less garbage.
    const end = bytes.indexOf(NEWLINE);
    this.#pending.push(end === -1 ? bytes : bytes.subarray(0, end));
    const first = this.#decode(Buffer.concat(this.#pending));
    this.#pending = [];
    this.#pendingBytes = 0;
    this.#splitText(first);
    if (end !== -1) this.#splitText(this.#decode(bytes.subarray(end + 1)));
  }

  #splitText(text: string): void {
    let from = 0;
    for (;;) {
      const next = text.indexOf("\n", from);
      const to = next === -1 ? text.length : next;
      const isWindows = to > from && text.charCodeAt(to - 1) === RETURN;
      this.#line(text, from, isWindows ? to - 1 : to);
      if (next === -1) return;
      from = next + 1;
    }
  }

  #line(text: string, from: number, to: number): void {
    // A character has at most three bytes for each unit of its length.
    const mayBeOverlong = (to - from) * 3 > this.#maxBytes;
    if (mayBeOverlong && Buffer.byteLength(text.slice(from, to)) > this.#maxBytes) {
      this.#sink.overlong(text.slice(from, from + KEPT_BYTES));
    } else this.#sink.line(text, from, to);
  }

  #decode(bytes: Buffer): string {
    const hasMark = this.#isStart && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK);
    this.#isStart = false;
    const content = hasMark ? bytes.subarray(3) : bytes;
    // For ASCII, this is twice as fast as decoding UTF-8.
    return content.toString(isAscii(content) ? "latin1" : "utf8");
  }
}

/** Reads requests from the bytes of one file. */
export interface RequestReader {
  /** Returns the requests that these bytes complete, in the order of the file. */
  push(chunk: Buffer): LogRequest[];
  /** Returns the requests that the end of the file completes. */
  end(): LogRequest[];
}

/** Lines of one file, and how to read them. */
export interface LineInput {
  /** The name of the file, for the report. */
  readonly file: string;
  readonly parser: LineParser;
  readonly counts: LogCounts;
  /** The host of requests whose lines state none. */
  readonly host: string | undefined;
  /** The maximum length of a line, in bytes. */
  readonly maxBytes: number;
}

/** Reads requests from lines, and counts the lines that are none. */
export class LineReader implements RequestReader {
  readonly #input: LineInput;
  readonly #splitter: LineSplitter;
  #number = 0;
  #requests: LogRequest[] = [];

  constructor(input: LineInput) {
    this.#input = input;
    this.#splitter = new LineSplitter(input.maxBytes, {
      line: (text, from, to) => this.#readLine(text, from, to),
      overlong: (start) => this.#countOverlong(start),
    });
  }

  push(chunk: Buffer): LogRequest[] {
    this.#splitter.push(chunk);
    return this.#take();
  }

  end(): LogRequest[] {
    this.#splitter.end();
    return this.#take();
  }

  #take(): LogRequest[] {
    const requests = this.#requests;
    this.#requests = [];
    return requests;
  }

  #readLine(text: string, from: number, to: number): void {
    const { file, parser, counts } = this.#input;
    this.#number++;
    const content = parser.parse(text, from, to);
    if (typeof content === "object") {
      this.#requests.push(content);
      counts.lines++;
    } else if (content === undefined) {
      counts.ignored++;
      counts.lines++;
    } else {
      const line = text.slice(from, to);
      if (line.trim() === "") return;
      counts.addBroken(file, this.#number, content, line);
      counts.lines++;
    }
  }

  #countOverlong(start: string): void {
    const { file, counts, maxBytes } = this.#input;
    this.#number++;
    counts.lines++;
    counts.addBroken(file, this.#number, `is longer than ${maxBytes / 1024} KiB`, start);
  }
}
