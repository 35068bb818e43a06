import { LineSplitter } from "./line-splitter.ts";
import type { LogRequest } from "./log-request.ts";
import type { LineInput, RequestReader } from "./request-form.ts";

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

  /** Counts a line that another reader has read. */
  passLine(): void {
    this.#number++;
    this.#input.counts.lines++;
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
