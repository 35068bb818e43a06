import type { Config } from "../config/schema.ts";

/**
 * The functions that compute the keys `custom:NAME`. The name of each property is the NAME of a
 * key. A key counts as absent if its function throws, or if it returns an empty text or a value
 * that is not a text. Weir then uses the next alternative of the key, or the client's address.
 *
 * A function receives the request that will be forwarded. To read the body, it must clone the
 * request.
 */
export type CustomKeys = Readonly<
  Record<string, (request: Request) => CustomKeyValue | Promise<CustomKeyValue>>
>;

/** The result of a function for `custom:NAME`. If it is not a text, the key counts as absent. */
export type CustomKeyValue = string | null | undefined;

/** Calls the function for `custom:NAME` and returns its text; undefined if the key is absent. */
export async function computeCustomKey(
  keys: CustomKeys,
  name: string,
  request: Request,
): Promise<string | undefined> {
  const compute = functionNamed(keys, name);
  try {
    const value: unknown = await compute?.(request);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a message for each key `custom:NAME` that the rules use and that has no function. */
export function customKeyFaults({ rules }: Config, keys: CustomKeys): string[] {
  const parts = rules.flatMap(({ key, tiers }) => [key, tiers?.by ?? []].flat(2));
  const names = new Set(parts.flatMap((part) => (part.kind === "custom" ? part.name : [])));
  return [...names]
    .filter((name) => !functionNamed(keys, name))
    .map((name) => `no function is given for the key custom:${name}: pass it in { keys }`);
}

/** Returns the function for a name. Ignores inherited properties, such as `constructor`. */
function functionNamed(keys: CustomKeys, name: string): CustomKeys[string] | undefined {
  const compute: unknown = Object.hasOwn(keys, name) ? keys[name] : undefined;
  return typeof compute === "function" ? (compute as CustomKeys[string]) : undefined;
}
