import type { LogFacts, LogRequest } from "./log-request.ts";

/** What a line is: a request, the reason why it cannot be read, or `undefined` if it is no request. */
export type LineContent = LogRequest | string | undefined;

/** Reads the lines of one file. */
export interface LineParser {
  /**
   * Parses a line, which is a part of a text with many lines.
   *
   * @param from the index of its first character; 0 if undefined
   * @param to the index of its end, without the line end; the text's end if undefined
   * @returns a request with memory of its own, so that it does not keep the text alive
   */
  parse(text: string, from?: number, to?: number): LineContent;
  /** What the lines that have been parsed so far state. */
  facts(): LogFacts;
}
