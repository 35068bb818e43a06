import leven from "leven";
import * as v from "valibot";

// Building blocks of the schema. The message of each schema lists what is allowed; `faults.ts` writes
// the sentence around it.

/**
 * An object schema that reports every unknown field at its own path. Valibot's own strict object stops
 * at the first one.
 *
 * @param example how the object looks, for the message about any other value
 */
export function fields<const Entries extends v.ObjectEntries>(entries: Entries, example?: string) {
  const names = Object.keys(entries).join(", ");
  const allowed = example ?? `an object with ${names}`;
  const schema = v.pipe(
    // Valibot also accepts a list as an object.
    v.custom<Record<string, unknown>>(isRecord, allowed),
    // Valibot skips these fields without an issue.
    v.check((object) => !UNSAFE_FIELDS.some((field) => Object.hasOwn(object, field)), allowed),
    v.objectWithRest(entries, v.never(names), (issue) => {
      const missing = issue.path?.at(-1)?.key;
      const entry = typeof missing === "string" ? entries[missing] : undefined;
      return entry ? String(messageOf(entry)) : allowed;
    }),
  );
  // An object that accepts no other fields is a strict one, and its type should say so.
  return schema as unknown as v.StrictObjectSchema<Entries, undefined>;
}

const UNSAFE_FIELDS = ["__proto__", "constructor", "prototype"];

/**
 * Whether a value is a plain object, from any realm. False for null and lists, which `typeof` also
 * calls objects, and for a Map or a Date, whose content no schema would see.
 */
export function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function messageOf(schema: object): unknown {
  return "message" in schema ? schema.message : undefined;
}

/** A whole number in a range, bounds included. */
export function integer(min: number, max: number) {
  const allowed = `a whole number from ${min} to ${max}`;
  return v.pipe(
    v.number(allowed),
    v.integer(allowed),
    v.minValue(min, allowed),
    v.maxValue(max, allowed),
  );
}

/** One of a few words. */
export function oneOf<const Words extends readonly string[]>(...words: Words) {
  return v.picklist(words, words.map((word) => JSON.stringify(word)).join(", "));
}

/** A text that matches a pattern. */
export function textMatching(pattern: RegExp, allowed: string) {
  return parsedText((text) => (pattern.test(text) ? text : undefined), allowed);
}

/** The name of a binding, a secret or a var, as wrangler accepts it. */
export function bindingName(allowed: string) {
  return textMatching(/^[A-Za-z_]\w*$/, allowed);
}

/** A text in a special notation. The schema's output is what `parse` returns; undefined is a fault. */
export function parsedText<Output>(parse: (text: string) => Output | undefined, allowed: string) {
  return v.pipe(
    v.string(allowed),
    v.rawTransform<string, Output>(({ dataset, addIssue, NEVER }) => {
      const output = parse(dataset.value);
      if (output !== undefined) return output;
      addIssue({ message: allowed });
      return NEVER;
    }),
  );
}

/** A list of one or more. */
export function listOf<const Item extends v.GenericSchema>(item: Item, allowed: string) {
  return v.pipe(v.array(item, allowed), v.minLength(1, allowed));
}

/**
 * An object with one or more fields whose names the user chooses. The output is a Map, in which
 * `__proto__` and `constructor` are ordinary names.
 */
export function mapOf<
  const Name extends v.GenericSchema<string, string>,
  const Item extends v.GenericSchema,
>(name: Name, item: Item, allowed: string) {
  return v.pipe(
    v.custom<Readonly<Record<string, v.InferInput<Item>>>>(isRecord, allowed),
    v.transform((object) => new Map(Object.entries(object))),
    v.map(name, item, allowed),
    v.minSize(1, allowed),
  );
}

/** The path of an issue to a field of an object. */
export function pathTo(object: object, key: string): v.ObjectPathItem {
  const input = object as Record<string, unknown>;
  return { type: "object", origin: "value", input, key, value: input[key] };
}

/** The path of an issue to an element of a list. */
export function pathToItem(input: unknown[], index: number): v.ArrayPathItem {
  return { type: "array", origin: "value", input, key: index, value: input[index] };
}

/** The allowed name that is closest to a misspelt one: at most two edits away. */
export function nearestName(given: string, allowed: readonly string[]): string | undefined {
  const [nearest] = allowed
    .map((name) => ({ name, distance: leven(given.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, distance }) => distance <= 2 && distance < name.length)
    .sort((a, b) => a.distance - b.distance);
  return nearest?.name;
}
