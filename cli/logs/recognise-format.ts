import { AccessLineParser } from "./access-line.ts";
import type { FieldMap } from "./field-map.ts";
import type { LogFormat } from "./log-format.ts";
import type { LineParser } from "./log-line.ts";
import { isLogpush, jsonFields, type LogRecord, logpushFields } from "./record-fields.ts";
import { parseRecord, RecordParser } from "./record-parser.ts";

/** The first records by which fields are found. */
const MAX_RECORDS = 200;

/** The start of a HAR file. Most are one long line, of which only the start is known. */
const HAR_START = /^\s*\{\s*"log"\s*:\s*\{/;

/** Lines of access logs, also those whose request cannot be read. */
const ACCESS_LINE = /^\S+ .*\[\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] "/;

/**
 * Recognises the format of a file by its start.
 *
 * @param lines the first lines
 * @returns undefined if no line has a known format
 */
export function recogniseFormat(lines: readonly string[]): LogFormat | undefined {
  const [first = ""] = lines;
  const record = parseRecord(first);
  const log = record?.log;
  if (typeof log === "object" && log !== null && "entries" in log) return "har";
  if (!record && HAR_START.test(lines.slice(0, 5).join("\n").slice(0, 1000))) return "har";
  const parser = new AccessLineParser(undefined);
  if (lines.some((line) => ACCESS_LINE.test(line) || typeof parser.parse(line) === "object")) {
    return "combined";
  }
  const records = recordsOf(lines);
  if (records.length === 0) return undefined;
  return isLogpush(records) ? "logpush" : "json";
}

/**
 * Creates a parser for lines.
 *
 * @param lines the first lines of the file
 * @param fields the fields that `--map` names
 * @param host the host of requests whose lines state none
 */
export function createParser(
  format: Exclude<LogFormat, "har">,
  lines: readonly string[],
  fields: FieldMap,
  host: string | undefined,
): LineParser {
  if (format === "combined") return new AccessLineParser(host);
  return new RecordParser(fieldsOf(format, recordsOf(lines), fields), host);
}

/**
 * Returns the fields of the facts.
 *
 * @param records the first records of the file
 * @param given the fields that `--map` names
 */
export function fieldsOf(
  format: "json" | "logpush",
  records: readonly LogRecord[],
  given: FieldMap,
): FieldMap {
  return format === "logpush" ? logpushFields(records, given) : jsonFields(records, given);
}

/** Returns the records of the first lines. */
export function recordsOf(lines: readonly string[], max = MAX_RECORDS): LogRecord[] {
  return lines
    .slice(0, max)
    .map(parseRecord)
    .filter((record) => record !== undefined);
}
