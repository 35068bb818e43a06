import { AccessLineParser } from "./access-line.ts";
import type { LogFormat } from "./log-format.ts";
import type { LineParser } from "./log-line.ts";

/** How a file is read. */
export interface RecognisedFormat {
  readonly format: LogFormat;
  /** Creates the parser of the file's lines. */
  readonly parser: () => LineParser;
  readonly maxLineBytes: number;
}

const MAX_LINE_BYTES = 64 * 1024;

/**
 * Recognises a format by the first lines of a file.
 *
 * @returns undefined if no line has a known format
 */
export function recogniseFormat(
  lines: readonly string[],
  host: string | undefined,
): RecognisedFormat | undefined {
  const parser = new AccessLineParser(host);
  if (!lines.some((line) => typeof parser.parse(line) === "object")) return undefined;
  return {
    format: "combined",
    parser: () => new AccessLineParser(host),
    maxLineBytes: MAX_LINE_BYTES,
  };
}
