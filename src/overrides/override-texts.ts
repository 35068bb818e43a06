// Parts of the messages about the fields of an override.

/** The maximum number of names that a message lists. */
const MAX_NAMES = 20;
/** The maximum length of a given text that a message repeats. */
const MAX_SHOWN = 40;

/** Returns names for a message. */
export function listOf(names: readonly string[]): string {
  const rest = names.length - MAX_NAMES;
  const listed = names.slice(0, MAX_NAMES).join(", ") || "there are none";
  return rest > 0 ? `${listed}, and ${rest} more` : listed;
}

/** Describes a value that is not the expected one, as the end of a sentence. */
export function notGiven(value: unknown): string {
  return value === undefined ? "but is missing" : `not ${shown(value)}`;
}

function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(shortened(value));
  if (typeof value === "number" || typeof value === "boolean" || value === null)
    return String(value);
  if (value instanceof Date)
    return Number.isNaN(value.getTime()) ? "an invalid date" : value.toISOString();
  if (Array.isArray(value)) return "a list";
  return `a value of type ${typeof value}`;
}

/** Returns the first characters of a text. */
export function shortened(text: string): string {
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
