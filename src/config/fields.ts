import * as v from "valibot";
import { faultText } from "./faults.ts";

// Building blocks of the schema. The message of each schema lists the allowed values. `faults.ts`
// puts this list into a sentence.

/**
 * Returns an object schema that reports every unknown field at its own path. Valibot's own strict
 * object reports only the first unknown field.
 *
 * @param example an example of the object, for the message about a value that is not an object
 */
export function fields<const Entries extends v.ObjectEntries>(entries: Entries, example?: string) {
  const names = faultText(() => Object.keys(entries).join(", "));
  const allowed = example ?? faultText(() => `an object with ${names}`);
  const schema = v.pipe(
    // Valibot also accepts a list as an object, so this check refuses lists.
    v.custom<Record<string, unknown>>(isRecord, allowed),
    // Valibot ignores fields with these names, so this check reports them.
    v.check((object) => !UNSAFE_FIELDS.some((field) => Object.hasOwn(object, field)), allowed),
    v.objectWithRest(entries, v.never(names), (issue) => {
      const missing = issue.path?.at(-1)?.key;
      const entry = typeof missing === "string" ? entries[missing] : undefined;
      return entry ? String(messageOf(entry)) : allowed;
    }),
  );
  // This schema accepts no other fields, so it has the type of a strict object.
  return schema as unknown as v.StrictObjectSchema<Entries, undefined>;
}

const UNSAFE_FIELDS = ["__proto__", "constructor", "prototype"];

/**
 * Whether a value is a plain object. A plain object of a different realm counts too. False for null
 * and lists, although their `typeof` is `"object"`. Also false for a Map and a Date, because no
 * schema checks their content.
 */
export function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function messageOf(schema: object): unknown {
  return "message" in schema ? schema.message : undefined;
}

// The following schemas use v.custom for values that Valibot has schemas for, such as numbers. Each of
// Valibot's schemas and actions has a part in the Worker's bundle.

/** Returns the schema of a whole number from `min` to `max`. */
export function integer(
  min: number,
  max: number,
  allowed = faultText(() => `a whole number from ${min} to ${max}`),
) {
  return v.custom<number>(
    (value) => Number.isInteger(value) && Number(value) >= min && Number(value) <= max,
    allowed,
  );
}

/** Returns the schema of true and false. */
export function boolean() {
  return v.custom<boolean>((value) => typeof value === "boolean", faultText("true or false"));
}

/** Returns the schema of a text that is one of `words`. */
export function oneOf<const Words extends readonly string[]>(...words: Words) {
  return v.custom<Words[number]>(
    (value) => words.includes(value as string),
    faultText(() => words.map((word) => JSON.stringify(word)).join(", ")),
  );
}

/** Returns the schema of a text that matches a pattern. */
export function textMatching(pattern: RegExp, allowed: string) {
  return parsedText((text) => (pattern.test(text) ? text : undefined), allowed);
}

/** The names of bindings, secrets and vars that wrangler allows. */
export const BINDING_NAME = /^[A-Za-z_]\w*$/;

/** Returns the schema of the name of a binding, a secret or a var, as wrangler allows it. */
export function bindingName(allowed: string) {
  return textMatching(BINDING_NAME, allowed);
}

/**
 * Returns the schema of a text that `parse` converts. It is a fault if `parse` returns undefined.
 */
export function parsedText<Output>(parse: (text: string) => Output | undefined, allowed: string) {
  return parsed<string, Output>(
    (value) => (typeof value === "string" ? parse(value) : undefined),
    allowed,
  );
}

/**
 * Returns the schema of a value that `parse` converts. It is a fault if `parse` returns undefined.
 */
export function parsed<Input, Output>(
  parse: (value: unknown) => Output | undefined,
  allowed: string,
) {
  return v.pipe(
    v.custom<Input>(() => true, allowed),
    v.rawTransform<Input, Output>(({ dataset, addIssue, NEVER }) => {
      const output = parse(dataset.value);
      if (output !== undefined) return output;
      addIssue({ message: allowed });
      return NEVER;
    }),
  );
}

/** The maximum number of items of a list. */
const MAX_ITEMS = 10_000;

/** Returns the schema of a list. The items of a list that is too long are not checked. */
export function listUpTo<const Item extends v.GenericSchema>(
  max: number,
  item: Item,
  allowed: string,
  tooLong = faultText(() => `at most ${max} items`),
) {
  return v.pipe(
    v.custom<v.InferInput<Item>[]>(Array.isArray, allowed),
    v.rawCheck(({ dataset, addIssue }) => {
      if (dataset.typed && dataset.value.length > max) addIssue({ message: tooLong });
    }),
    v.array(item, allowed),
  );
}

/** Returns the schema of a list with at least one item. */
export function listOf<const Item extends v.GenericSchema>(item: Item, allowed: string) {
  return v.pipe(
    listUpTo(MAX_ITEMS, item, allowed),
    v.check((list) => list.length > 0, allowed),
  );
}

/**
 * Returns the schema of an object whose field names the user chooses. The output is a Map, in which
 * `__proto__` and `constructor` are ordinary names.
 */
export function anyMapOf<
  const Name extends v.GenericSchema<string, string>,
  const Item extends v.GenericSchema,
>(name: Name, item: Item, allowed: string) {
  return v.pipe(
    v.custom<Readonly<Record<string, v.InferInput<Item>>>>(isRecord, allowed),
    v.transform((object) => new Map(Object.entries(object))),
    v.map(name, item, allowed),
  );
}

/** Returns the schema that {@link anyMapOf} returns, for an object with at least one field. */
export function mapOf<
  const Name extends v.GenericSchema<string, string>,
  const Item extends v.GenericSchema,
>(name: Name, item: Item, allowed: string) {
  return v.pipe(
    anyMapOf(name, item, allowed),
    v.check((map) => map.size > 0, allowed),
  );
}

/** Returns the part of an issue's path that leads from an object to one of its fields. */
export function pathTo(object: object, key: string): v.ObjectPathItem {
  const input = object as Record<string, unknown>;
  return { type: "object", origin: "value", input, key, value: input[key] };
}

/** Returns the part of an issue's path that leads from a list to one of its elements. */
export function pathToItem(input: unknown[], index: number): v.ArrayPathItem {
  return { type: "array", origin: "value", input, key: index, value: input[index] };
}

/** The fields of an object that may have faults. */
export type Fields = Readonly<Record<string, unknown>>;

/** Reports a fault at a field of the checked object. */
type Refuse = (message: string, ...path: readonly string[]) => void;

/** Returns a check that runs whether or not the object has other faults. */
export function checkOf<Output>(check: (fields: Fields, refuse: Refuse) => void) {
  return v.rawCheck<Output>(({ dataset, addIssue }) => {
    const fields: unknown = dataset.value;
    if (!isRecord(fields)) return;
    check(fields, (message, ...names) => {
      let at: unknown = fields;
      const path = names.map((name) => {
        const item = pathTo(isRecord(at) ? at : {}, name);
        at = item.value;
        return item;
      });
      addIssue({ path: path as [v.ObjectPathItem, ...v.ObjectPathItem[]], input: at, message });
    });
  });
}

/** Reports that each field in `names` must be removed if it is set. */
export function refuseGiven(
  fields: Fields,
  names: readonly string[],
  because: string,
  refuse: Refuse,
): void {
  for (const name of names) {
    if (fields[name] === undefined) continue;
    refuse(
      faultText(() => `remove ${name}: ${because}`),
      name,
    );
  }
}

/**
 * Reports names of a Map that mean the same, such as one host in two spellings.
 *
 * @param parse returns the canonical form of a name; undefined for a faulty name
 * @param same the words that follow the first spelling in the message, such as "is the same host"
 */
export function differentNames<Input>(
  parse: (name: string) => string | undefined,
  same: string,
): v.RawCheckAction<Input> {
  return v.rawCheck<Input>(({ dataset, addIssue }) => {
    const map: unknown = dataset.value;
    if (!(map instanceof Map)) return;
    const firsts = new Map<string, string>();
    for (const [key, value] of map as Map<string, unknown>) {
      const name = parse(key);
      const first = name && firsts.get(name);
      if (name && !first) firsts.set(name, key);
      if (!first) continue;
      addIssue({
        path: [{ type: "map", origin: "value", input: map, key, value }],
        input: value,
        message: faultText(() => `${JSON.stringify(first)} ${same}`),
      });
    }
  });
}

/**
 * A text for which editors suggest the given examples.
 *
 * The compiler accepts every text, because a text in a variable has the type `string`.
 * `defineConfig` reports an invalid text at run time. Without the intersection, the compiler would
 * reduce the union to `string`, and editors would suggest nothing.
 */
export type LiteralUnion<Example extends string> = Example | (string & Record<never, never>);
