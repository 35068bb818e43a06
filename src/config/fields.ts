import * as v from "valibot";
import { type FaultCode, faultText } from "./faults.ts";

// Building blocks of the schema. The message of each schema lists the allowed values. `explain/explained-faults.ts`
// puts this list into a sentence.

/**
 * Returns an object schema that reports every unknown field at its own path. Valibot's own strict object reports only
 * the first unknown field.
 *
 * @param example an example of the object, for the message about a value that is not an object
 */
export function fields<const Entries extends v.ObjectEntries>(entries: Entries, example?: string) {
  const names = faultText(() => Object.keys(entries).join(", "));
  const allowed = example ?? faultText(() => `an object with ${names}`);
  const schema = v.pipe(
    // Valibot accepts a list as an object, so this check refuses lists.
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
 * Whether a value is a plain object, also of a different realm. False for null and lists, although their `typeof` is
 * `"object"`. False for a Map and a Date, because no schema checks their content.
 */
export function isRecord(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function messageOf(schema: object): unknown {
  return "message" in schema ? schema.message : undefined;
}

// The following schemas use v.custom for numbers and other values for which Valibot has its own schemas, because each
// of Valibot's schemas and actions takes space in the Worker's bundle.

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

/** Returns the schema of a text that `parse` converts. If `parse` returns undefined, the text is a fault. */
export function parsedText<Output>(parse: (text: string) => Output | undefined, allowed: string) {
  return parsed<string, Output>(
    (value) => (typeof value === "string" ? parse(value) : undefined),
    allowed,
  );
}

/** Returns the schema of a value that `parse` converts. If `parse` returns undefined, the value is a fault. */
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

/** Returns the schema of a list. Does not check the items of a too long list. */
export function listUpTo<const Item extends v.GenericSchema>(
  max: number,
  item: Item,
  allowed: string,
  tooLong = faultText(() => `at most ${max} items`),
) {
  return v.pipe(
    v.custom<v.InferInput<Item>[]>(Array.isArray, allowed),
    checkListOf((list, refuse) => {
      if (list.length > max) refuse("too-many", tooLong);
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
 * Returns the schema of an object whose field names the user chooses. The output is a Map, in which `__proto__` and
 * `constructor` are ordinary names.
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

/** Returns the path of an issue, and the value there. A field of a Map is one of its keys. */
export function placeIn(value: unknown, keys: readonly (string | number)[]) {
  let at = value;
  const path = keys.map((key): v.UnknownPathItem => {
    const input = at;
    at = input instanceof Map ? input.get(key) : Object(input)[key];
    return { type: "unknown", origin: "value", input, key, value: at };
  });
  return { path: path as [v.UnknownPathItem, ...v.UnknownPathItem[]], input: at };
}

/** Reports a fault at a place in the checked value. */
export type Refuse = (
  code: FaultCode,
  message: string,
  ...keys: readonly (string | number)[]
) => void;

/**
 * Returns a check of values of one type. The check also runs if the value has other faults, so that Weir reports all
 * faults at once. In a faulty value, the parts without a fault are parsed, and the parts with a fault are as the user
 * wrote them.
 *
 * @param is the test of a value's type; the schema reports a value that fails the test
 */
export function checkIf<Value, Output>(
  is: (value: unknown) => value is Value,
  check: (value: Value, refuse: Refuse, hasFaults: boolean) => void,
) {
  return v.rawCheck<Output>(({ dataset, addIssue }) => {
    const value: unknown = dataset.value;
    if (!is(value)) return;
    const refuse: Refuse = (code, message, ...keys) =>
      addIssue({ ...placeIn(value, keys), expected: code, message });
    check(value, refuse, !dataset.typed);
  });
}

/** The fields of an object that may have faults. */
export type Fields = Readonly<Record<string, unknown>>;

/** Returns a check of an object. It also runs if the object has other faults. */
export function checkOf<Output>(
  check: (fields: Fields, refuse: Refuse, hasFaults: boolean) => void,
) {
  return checkIf<Fields, Output>(isRecord, check);
}

/** Returns a check of a list. It also runs if the list has other faults. */
export function checkListOf<Output>(check: (items: readonly unknown[], refuse: Refuse) => void) {
  return checkIf<readonly unknown[], Output>(Array.isArray, check);
}

/** Whether a value is the output of a map schema. Its names are texts. */
export function isMap(value: unknown): value is ReadonlyMap<string, unknown> {
  return value instanceof Map;
}

/**
 * Reports names of a Map with the same meaning, such as one host in two spellings.
 *
 * @param parse returns the canonical form of a name; undefined for a faulty name
 * @param same the words that follow the first spelling in the message, such as "is the same host"
 */
export function differentNames<Input>(parse: (name: string) => string | undefined, same: string) {
  return checkIf<ReadonlyMap<string, unknown>, Input>(isMap, (map, refuse) => {
    const firsts = new Map<string, string>();
    for (const key of map.keys()) {
      const name = parse(key);
      const first = name && firsts.get(name);
      if (name && !first) firsts.set(name, key);
      if (first)
        refuse(
          "duplicate",
          faultText(() => `${JSON.stringify(first)} ${same}`),
          key,
        );
    }
  });
}

/**
 * A text for which editors suggest the given examples.
 *
 * The compiler accepts every text, because a text in a variable has the type `string`. `defineConfig` reports an
 * invalid text at run time. Without the intersection, the compiler would reduce the union to `string`, and editors
 * would have no suggestions.
 */
export type LiteralUnion<Example extends string> = Example | (string & Record<never, never>);
