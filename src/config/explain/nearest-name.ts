import leven from "leven";

/**
 * Returns the allowed name that is most similar to a misspelt name. In a short name, only one edit is
 * allowed: with two edits, `rate` would match `name`, and `max` would match `ban`.
 */
export function nearestName(given: string, allowed: readonly string[]): string | undefined {
  const [nearest] = allowed
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
