import { AccessLineParser } from "./access-line.ts";
import { type FieldMap, fieldsOf, recordsOf } from "./json-fields.ts";
import { RecordParser } from "./json-records.ts";
import type { LineParser, LogFormat } from "./log-request.ts";

// This module uses nothing of Node but addresses, because the playground of the website reads logs in a browser.

/**
 * Recognises the format of a file by its start.
 *
 * @param lines the first lines
 * @returns undefined if no line has a known format
 */
export function recogniseFormat(lines: readonly string[]): LogFormat | undefined {
  const parser = new AccessLineParser(undefined);
  for (const line of lines) {
    parser.parse(line);
    if (parser.isRecognised) return "combined";
  }
  return recordsOf(lines, 1).length === 0 ? undefined : "json";
}

/**
 * Creates a parser for lines.
 *
 * @param lines the first lines of the file
 * @param fields the fields that `--map` names
 * @param host the host of requests whose lines have no host
 * @param withDurations whether to read how long requests took
 */
export function createParser(
  format: LogFormat,
  lines: readonly string[],
  fields: FieldMap,
  host: string | undefined,
  withDurations = false,
): LineParser {
  if (format === "combined") return new AccessLineParser(host);
  return new RecordParser(fieldsOf(recordsOf(lines), fields), host, withDurations);
}
