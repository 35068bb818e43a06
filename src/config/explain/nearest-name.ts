import leven from "leven";

/** The maximum length of a name for which a similar name is searched. */
const MAX_LENGTH = 100;

/**
 * Returns the allowed name that is most similar to a misspelt name. A short name may have only one edit, because with
 * two edits, `rate` would match `name`, and `max` would match `ban`.
 */
export function nearestName(given: string, allowed: readonly string[]): string | undefined {
  if (given.length > MAX_LENGTH) return undefined;
  const { length } = bareName(given);
  const [nearest] = allowed
    // Lengths are compared first, because comparing two names takes much longer.
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
