import { printable } from "../doctor/finding.ts";
import type { FieldPath } from "./field-path.ts";
import type { LogRecord } from "./record-fields.ts";

/** The records whose fields are listed, and how deep objects in objects are read. */
const MAX_RECORDS = 20;
const MAX_DEPTH = 5;
/** How many names are found, how many a message lists, and the maximum length of a listed name. */
const MAX_FOUND = 500;
const MAX_LISTED = 40;
const MAX_LENGTH = 80;

/** Returns a path as `--map` takes it. */
export function pathText(path: FieldPath): string {
  return path.map((name) => name.replace(/[\\.]/g, "\\$&")).join(".");
}

/** Returns the paths of the fields of the first records, those of nested objects too. */
export function fieldNames(records: readonly LogRecord[]): string[] {
  const names = new Set<string>();
  for (const record of records.slice(0, MAX_RECORDS)) addNames(record, [], names);
  return [...names];
}

function addNames(object: object, path: FieldPath, names: Set<string>): void {
  for (const [name, value] of Object.entries(object)) {
    if (names.size >= MAX_FOUND) return;
    const nested = [...path, name];
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    if (isObject && nested.length < MAX_DEPTH) addNames(value, nested, names);
    else names.add(pathText(nested));
  }
}

/** Returns a list of names for a message. */
export function listedNames(names: readonly string[]): string {
  const listed = names.slice(0, MAX_LISTED).map((name) => printable(name.slice(0, MAX_LENGTH)));
  const left = names.length - listed.length;
  return left > 0 ? `${listed.join(", ")} and ${left} more` : listed.join(", ");
}
