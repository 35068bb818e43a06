import leven from "leven";
import * as v from "valibot";

// Each schema's message says what is allowed in its place; `faults.ts` builds the sentence around it.

/**
 * An object schema that reports every field it does not know, each at its own path, where
 * valibot's own strict object stops at the first.
 *
 * @param example how the object looks, for who gave something else
 */
export function fields<const Entries extends v.ObjectEntries>(entries: Entries, example?: string) {
  const names = Object.keys(entries).join(", ");
  const allowed = example ?? `an object with ${names}`;
  const schema = v.pipe(
    // To valibot a list is an object too; and these fields it would pass over in silence.
    v.custom<Record<string, unknown>>(isRecord, allowed),
    v.check((object) => !UNSAFE_FIELDS.some((field) => Object.hasOwn(object, field)), allowed),
    v.objectWithRest(entries, v.never(names), (issue) => {
      const missing = issue.path?.at(-1)?.key;
      const entry = typeof missing === "string" ? entries[missing] : undefined;
      return entry ? String(messageOf(entry)) : allowed;
    }),
  );
  // An object that admits no rest is a strict one, which its type should say.
  return schema as unknown as v.StrictObjectSchema<Entries, undefined>;
}

const UNSAFE_FIELDS = ["__proto__", "constructor", "prototype"];

/**
 * An object as one writes it in braces, from whatever realm: not null nor a list, which typeof calls
 * objects too, and not a Map or a Date, whose content would be passed over in silence.
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

/** A text in a notation of its own, kept as what `parse` makes of it; undefined is a fault. */
export function parsed<Output>(parse: (text: string) => Output | undefined, allowed: string) {
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
 * An object whose fields are named by the user, kept as a Map: in one `__proto__` and `constructor`
 * are names like any other. One or more.
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

/** The allowed name that a misspelt one was probably meant to be: at most two edits away. */
export function nearestName(given: string, allowed: readonly string[]): string | undefined {
  const [nearest] = allowed
    .map((name) => ({ name, distance: leven(given.toLowerCase(), name.toLowerCase()) }))
    .filter(({ name, distance }) => distance <= 2 && distance < name.length)
    .sort((a, b) => a.distance - b.distance);
  return nearest?.name;
}
