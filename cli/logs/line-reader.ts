import { LineSplitter } from "./line-splitter.ts";
import type { LineParser } from "./log-line.ts";
import type { LogCounts } from "./log-progress.ts";
import type { LogRequest } from "./log-request.ts";

/** Reads requests from the bytes of one file. */
export interface RequestReader {
  /** Returns the requests that these bytes complete, in the order of the file. */
  push(chunk: Buffer): LogRequest[];
  /** Returns the requests that the end of the file completes. */
  end(): LogRequest[];
}

/** Reads requests from lines, and counts the lines that are none. */
export class LineReader implements RequestReader {
  readonly #splitter: LineSplitter;
  #requests: LogRequest[] = [];

  /**
   * @param file the name of the file, for the report
   * @param maxBytes the maximum length of a line
   */
  constructor(file: string, parser: LineParser, counts: LogCounts, maxBytes: number) {
    let number = 0;
    this.#splitter = new LineSplitter(maxBytes, {
      line: (text, from, to) => {
        number++;
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
          counts.addBroken(file, number, content, line);
          counts.lines++;
        }
      },
      overlong: (start) => {
        number++;
        counts.lines++;
        counts.addBroken(file, number, `is longer than ${maxBytes / 1024} KiB`, start);
      },
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
}
