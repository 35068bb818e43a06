import fc from "fast-check";

/** One change inside a value that consists of lists and objects. */
export interface Mutation {
  /**
   * Selects the list item or field to change. Its index is this number modulo the number of items
   * and fields.
   */
  readonly place: number;
  readonly kind: "replace" | "add" | "remove" | "rename";
  readonly name: string;
  readonly value: unknown;
}

const NAMES = [
  ...["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "", "a b", "0"],
  ...["limit", "window", "limits", "rules", "nmae", "Window", "key", "body", "\n"],
];
const VALUES = [
  ...[null, undefined, true, "", " ", "__proto__", "1m", "0s", "header:a", "\n", "\ud800"],
  ...[-1, -0, 0.5, 1e21, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY, 10n, [], {}, [[]]],
  ...[() => 1, Symbol("s"), new Date(0), "x".repeat(20_000)],
];

export const mutation: fc.Arbitrary<Mutation> = fc.record({
  place: fc.nat(999),
  kind: fc.constantFrom("replace", "replace", "add", "remove", "rename"),
  name: fc.constantFrom(...NAMES),
  value: fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom<unknown>(...VALUES) },
    { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
  ),
});

type Container = unknown[] | Record<string, unknown>;

/** Copies a value and changes the copy in one place. */
export function mutate(
  value: unknown,
  { place: index, kind, name, value: replacement }: Mutation,
): unknown {
  const copy = copyOf(value);
  const places = placesIn(copy);
  const place = places[index % Math.max(1, places.length)];
  if (!place) return replacement;
  const [container, key] = place;
  if (kind === "replace") set(container, key, replacement);
  else if (kind === "add") set(container, name, replacement);
  else {
    const removed = (container as Record<string, unknown>)[key];
    if (Array.isArray(container)) container.splice(Number(key), 1);
    else delete container[key];
    if (kind === "rename") set(container, name, removed);
  }
  return copy;
}

/** Sets a field without an assignment, so that `__proto__` becomes a field like any other. */
function set(container: Container, key: string, value: unknown): void {
  if (Array.isArray(container) && !/^\d+$/.test(key)) container.push(value);
  else {
    const own = { value, enumerable: true, configurable: true, writable: true };
    Object.defineProperty(container, key, own);
  }
}

function copyOf(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copyOf);
  if (!isPlainObject(value)) return value;
  const copy = {};
  for (const [key, field] of Object.entries(value)) set(copy, key, copyOf(field));
  return copy;
}

function placesIn(value: unknown): [Container, string][] {
  if (!Array.isArray(value) && !isPlainObject(value)) return [];
  const container = value as Container;
  return Object.entries(container).flatMap(([key, field]) => [
    [container, key] as [Container, string],
    ...placesIn(field),
  ]);
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && value.constructor === Object;
}
