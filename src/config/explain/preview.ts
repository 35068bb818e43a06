import { isRecord } from "../fields.ts";

const PREVIEW_LENGTH = 80;
/**
 * The length of the longest text whose content is shown. A part of a longer text is not shown either,
 * because it may be a part of a URL that begins with a password.
 */
const LONGEST_TEXT = 300;
/** The number of items of a list or an object that a preview reads. */
const MAX_ITEMS = 20;

/** Fields of an object whose texts are shown. */
const SHOWN = /^(url|binding|name|window|limit)$/;

/** Returns the kind of a value that may be a secret, such as `a text (not shown)`. */
export function kindOf(input: unknown): string {
  if (typeof input === "string") return input === "" ? '""' : "a text (not shown)";
  if (typeof input !== "object" || input === null) return preview(input);
  if (Array.isArray(input)) return input.length === 0 ? "[]" : "a list";
  return isRecord(input) && Object.keys(input).length === 0 ? "{}" : "an object";
}

/** Returns a value as a message may show it: shortened, on one line, and without secrets. */
export function preview(input: unknown): string {
  // The source of a function may contain a secret.
  if (typeof input === "function") return "a function";
  if (typeof input === "string" && input.length > LONGEST_TEXT) {
    return `a text of ${input.length} characters`;
  }
  if (input instanceof RegExp) return "a regular expression";
  if (input instanceof Date) return "a Date";
  if (input instanceof Promise) return "a promise";
  const text = textOf(input).replace(/\s+/g, " ");
  return text.length > PREVIEW_LENGTH ? `${text.slice(0, PREVIEW_LENGTH)}…` : text;
}

/**
 * Returns a value as JSON. For a value that JSON cannot represent (NaN, a bigint, a circular
 * object), it returns a short description.
 */
function textOf(input: unknown): string {
  if (typeof input === "bigint") return `${input}n`.slice(0, PREVIEW_LENGTH + 1);
  if (typeof input === "symbol") return "a symbol";
  if (typeof input !== "object" && typeof input !== "string") return String(input);
  try {
    const text: string | undefined = JSON.stringify(input, hideSecrets);
    if (text !== undefined) return text;
  } catch {
    // The value has a cycle, a bigint, or a method toJSON that throws.
  }
  return Array.isArray(input) ? "a list" : "an object";
}

/**
 * A replacer for JSON: hides the fields that may contain a secret, and the texts in objects, whose
 * field names the user may have chosen. It shortens long lists and objects.
 */
function hideSecrets(this: unknown, key: string, value: unknown): unknown {
  if (key === "exempt" || key === "secret" || key === "tiers") return "…";
  if (typeof value === "string") {
    const isField = key !== "" && isRecord(this);
    return (isField && !SHOWN.test(key)) || value.length > LONGEST_TEXT
      ? "…"
      : withoutCredentials(value);
  }
  if (Array.isArray(value)) return value.slice(0, MAX_ITEMS);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).slice(0, MAX_ITEMS));
}

/**
 * Hides passwords in URLs, values in queries, and the text after the name in a key, such as
 * `SECRET` in `header:NAME:SECRET`.
 */
export function withoutCredentials(text: string): string {
  return text
    .replace(/(?<=\/\/).*@/s, "…@")
    .replace(/^[^/\s]+@/, "…@")
    .replace(/(^|[|,]) *((header|cookie|query):[^:=|]*[:=]).*/s, (all, before, name: string) =>
      all.startsWith(name) ? `${name}…` : `${before} ${name}…`,
    )
    .replace(/^([^?#]*\/\/[^?#]*[?#]|[^/?][^?]*\?(?=[^=]*=)).*/s, (all, before: string) => {
      const query = all.slice(before.length);
      return (
        before +
        query.replace(
          /([^=&#;]*)(=?)[^&#;]*/g,
          (part, name, equals) => part && (equals ? `${name}=…` : "…"),
        )
      );
    });
}
