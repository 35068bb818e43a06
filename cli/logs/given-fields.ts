import { nearestName } from "../../src/config/explain/nearest-name.ts";
import { printable } from "../doctor/finding.ts";
import type { FieldMap } from "./field-map.ts";
import { fieldNames, listedNames, pathText } from "./field-names.ts";
import { type FieldPath, valueAt } from "./field-path.ts";
import { LogError } from "./log-error.ts";
import { isValid, type LogRecord } from "./record-fields.ts";

/** Facts that each request has. Without a field of one of them, a log has no such fact at all. */
const OF_EACH_REQUEST: ReadonlySet<string> = new Set([
  ...["time", "method", "url", "request", "host", "ip", "status"],
]);

/** A field that `--map` names, and that none of the first records has. */
export interface AbsentField {
  readonly fact: string;
  /** What is wrong, and which fields there are. */
  readonly reason: string;
}

/**
 * Finds misspelt fields of `--map`. Their facts would otherwise count as stated, so that a report would show
 * guesses as results.
 *
 * @param file the name of the log
 * @param records the first records of the log
 * @returns the fields of facts that only some requests have, such as a header field: another file may have them
 * @throws {LogError} if none of the records has the field of a fact that each request has
 */
export function absentFields(
  file: string,
  records: readonly LogRecord[],
  given: FieldMap,
): AbsentField[] {
  if (records.length === 0) return [];
  const absent = [...given]
    .filter(([fact, path]) => !records.some((record) => states(fact, record, path)))
    .map(([fact, path]) => ({ fact, reason: `${file}: ${reasonOf(fact, path, records)}` }));
  const fault = absent.find(({ fact }) => OF_EACH_REQUEST.has(fact));
  if (fault) throw new LogError(fault.reason);
  return absent;
}

function states(fact: string, record: LogRecord, path: FieldPath): boolean {
  const needsValue = OF_EACH_REQUEST.has(fact) && fact !== "host" && fact !== "method";
  return needsValue ? isValid(fact, record, path) : valueAt(record, path) !== undefined;
}

function reasonOf(fact: string, path: FieldPath, records: readonly LogRecord[]): string {
  const field = pathText(path);
  const shown = printable(field.slice(0, 100));
  if (records.some((record) => valueAt(record, path) !== undefined)) {
    return `--map ${fact}=${shown}: the field ${shown} of the first records has no value that can be the ${fact} of a request.`;
  }
  const names = fieldNames(records);
  const nearest = nearestName(field, names);
  const guess = nearest === undefined ? "" : ` Did you mean ${printable(nearest)}?`;
  return `--map ${fact}=${shown}: none of the first records has the field ${shown}.${guess} The first records have the fields ${listedNames(names)}.`;
}
