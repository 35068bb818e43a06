import type { FieldMap } from "./field-map.ts";
import { pathText } from "./field-names.ts";
import { valueAt } from "./field-path.ts";
import { type AbsentField, absentFields } from "./given-fields.ts";
import { missingFields } from "./missing-fields.ts";
import { fieldsOf, recordsOf } from "./recognise-format.ts";
import type { LogRecord } from "./record-fields.ts";
import { lacksZone } from "./record-time.ts";

/** What the first records of a file show about its fields. */
export interface RecordStart {
  /** Fields that `--map` names, and that none of the first records has. */
  readonly absent: readonly AbsentField[];
  /** What a reader must know about the records. */
  readonly notes: readonly string[];
}

/**
 * Checks the fields of the first records of a file.
 *
 * @param lines the first lines
 * @param given the fields that `--map` names
 * @param mustHaveRequests whether one of the lines must be a request
 * @throws {LogError} if none of the records has a field that each request needs
 */
export function checkStart(
  file: string,
  format: "json" | "logpush",
  lines: readonly string[],
  given: FieldMap,
  mustHaveRequests: boolean,
): RecordStart {
  const records = recordsOf(lines);
  // A program may write messages before its first request.
  const absent = given.size === 0 ? [] : absentFields(file, recordsOf(lines, lines.length), given);
  const fields = fieldsOf(format, records, given);
  if (mustHaveRequests) throw missingFields(file, format, records, fields);
  return { absent, notes: zoneNotes(file, records, fields) };
}

function zoneNotes(file: string, records: readonly LogRecord[], fields: FieldMap): string[] {
  const path = fields.get("time");
  if (!path || !records.some((record) => lacksZone(valueAt(record, path)))) return [];
  return [
    `${file}: the times in the field ${pathText(path)} have no zone. They are taken as UTC. If they are not, log them with a zone, such as 2026-11-22T10:00:00+01:00.`,
  ];
}
