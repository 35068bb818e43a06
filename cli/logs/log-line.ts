import type { LogFacts, LogRequest } from "./log-request.ts";

/** What a line is: a request, the reason why it cannot be read, or `undefined` if it is no request. */
export type LineContent = LogRequest | string | undefined;

/** Reads the lines of one file. */
export interface LineParser {
  /** Returns a request with memory of its own, so that it does not keep the line alive. */
  parse(line: string): LineContent;
  /** What the lines that have been parsed so far state. */
  facts(): LogFacts;
}
