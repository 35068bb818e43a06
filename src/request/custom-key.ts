import type { Config } from "../config/schema.ts";

/**
 * Functions behind the keys `custom:NAME`, by their names. What is not a text, and what throws, is
 * absent, and the key's next alternative or the client's address counts instead.
 *
 * A function gets the request that will be forwarded: it must not read its body, but that of a clone.
 */
export type CustomKeys = Readonly<
  Record<string, (request: Request) => CustomKey | Promise<CustomKey>>
>;

export type CustomKey = string | null | undefined;

export async function customKey(
  keys: CustomKeys,
  name: string,
  request: Request,
): Promise<string | undefined> {
  const derive = ownKey(keys, name);
  try {
    const value: unknown = await derive?.(request);
    return typeof value === "string" ? value : undefined;
  } catch {
    return undefined;
  }
}

/** For each key `custom:NAME` in the rules that has no function, what is wrong. */
export function customKeyFaults({ rules }: Config, keys: CustomKeys): string[] {
  const parts = rules.flatMap(({ key, tiers }) => [key, tiers?.by ?? []].flat(2));
  const names = new Set(parts.flatMap((part) => (part.kind === "custom" ? part.name : [])));
  return [...names]
    .filter((name) => !ownKey(keys, name))
    .map((name) => `no function is given for the key custom:${name}: pass it in { keys }`);
}

/** Not what every object inherits, such as `constructor`. */
function ownKey(keys: CustomKeys, name: string): CustomKeys[string] | undefined {
  const derive: unknown = Object.hasOwn(keys, name) ? keys[name] : undefined;
  return typeof derive === "function" ? (derive as CustomKeys[string]) : undefined;
}
