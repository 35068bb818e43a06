import leven from "leven";

/** The length of the longest name that may be misspelt. */
const MAX_LENGTH = 100;

/**
 * Returns the allowed name that is most similar to a misspelt name. In a short name, only one edit is
 * allowed: with two edits, `rate` would match `name`, and `max` would match `ban`.
 */
export function nearestName(given: string, allowed: readonly string[]): string | undefined {
  if (given.length > MAX_LENGTH) return undefined;
  const { length } = bareName(given);
  const [nearest] = allowed
    // Comparing two names takes much longer than comparing their lengths.
    .filter((name) => Math.abs(bareName(name).length - length) <= 2)
    .map((name) => ({ name, edits: editsBetween(bareName(given), bareName(name)) }))
    .filter(({ name, edits }) => edits <= (name.length > 4 ? 2 : 1) && edits < name.length)
    .sort((a, b) => a.edits - b.edits);
  return nearest?.name;
}

/** Returns a name in lower case and without separators, so that `on_error` is equal to `onError`. */
export function bareName(name: string): string {
  return name.toLowerCase().replace(/[\s_-]/g, "");
}

/** Counts the edits. Letters in a different order, as in `paht`, count as one edit. */
function editsBetween(one: string, other: string): number {
  const isReordered = one !== other && sorted(one) === sorted(other);
  return isReordered ? 1 : leven(one, other);
}

function sorted(word: string): string {
  return [...word].sort().join("");
}
