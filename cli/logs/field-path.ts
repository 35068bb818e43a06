/** The names that lead from a record to one of its fields. */
export type FieldPath = readonly string[];

/** An escaped character, or the characters up to the next dot or backslash. */
const TOKEN = /\\(.)|[^.\\]+|\.|\\$/gs;

/** Parses a path such as `request.headers`. A backslash stands before a dot or backslash inside a name. */
export function fieldPath(text: string): FieldPath {
  const names = [""];
  for (const [token, escaped] of text.matchAll(TOKEN)) {
    if (token === ".") names.push("");
    else names[names.length - 1] += escaped ?? token;
  }
  return names;
}

/** Returns the value of a field; undefined if a record does not have it. */
export function valueAt(record: unknown, path: FieldPath): unknown {
  let value = record;
  for (const name of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) {
      return undefined;
    }
    value = (value as Record<string, unknown>)[name];
  }
  return value;
}

/**
 * Returns a field as a text. A list of texts is joined, as fields of HTTP are.
 *
 * @returns undefined if the field is missing, empty, `-`, or no text or number
 */
export function textAt(record: unknown, path: FieldPath | undefined): string | undefined {
  if (path === undefined) return undefined;
  const value = valueAt(record, path);
  const text = Array.isArray(value) ? value.filter(isText).join(", ") : value;
  return isText(text) && text !== "" && text !== "-" ? String(text) : undefined;
}

/** Returns a field as a number that is not negative; undefined if it is none. */
export function numberAt(record: unknown, path: FieldPath | undefined): number | undefined {
  const text = textAt(record, path);
  const value = text === undefined ? Number.NaN : Number(text);
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}

function isText(value: unknown): value is string | number {
  return typeof value === "string" || typeof value === "number";
}
