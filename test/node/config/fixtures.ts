import { ConfigError, type ConfigInput, defineConfig, type Fault } from "edge-weir/config";

/**
 * Returns a rule with a name, a limit and `fields`. If `fields` has `limits`, the rule has no
 * `limit` and no `window`.
 */
export function rule(fields: object = {}): object {
  const quota = "limits" in fields ? {} : { limit: 5, window: "1m" };
  return { name: "api", ...quota, ...fields };
}

/** Returns a configuration of one rule, which has `fields`. */
export function withRule(fields: object): object {
  return { rules: [rule(fields)] };
}

/** Returns the rule that `defineConfig` makes from a rule with `fields`. */
export function definedRule(fields: object) {
  const [defined] = defineConfig(withRule(fields) as ConfigInput).rules;
  if (!defined) throw new Error("the rule is not there");
  return defined;
}

/**
 * Returns the faults that `defineConfig` throws for `input`; an empty list if it accepts `input`.
 */
export function faultsOf(input: unknown): readonly Fault[] {
  try {
    defineConfig(input as ConfigInput);
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.faults;
    throw error;
  }
}

/** Returns the keys of a path such as `rules[0].headers["x-a"]`. */
function keysIn(path: string): string[] {
  return (path.match(/(?<=\[)"(?:[^"\\]|\\.)*"(?=\])|[^.[\]]+/g) ?? []).map((key) =>
    key.startsWith('"') ? JSON.parse(key) : key,
  );
}

/** Returns the value at a path; undefined if there is none. */
export function valueAt(config: unknown, path: string): unknown {
  return keysIn(path).reduce((at, key) => Object(at)[key], config);
}

/** Returns a copy of a configuration with another value at a path. Creates the objects and lists on the way. */
export function withValue(config: unknown, path: string, value: unknown): unknown {
  const put = (at: unknown, [key, ...rest]: readonly string[]): unknown => {
    if (key === undefined) return value;
    const isIndex = /^\d+$/.test(key);
    const copy: Record<string, unknown> = Object.assign(isIndex ? [] : {}, at);
    copy[key] = put(copy[key], rest);
    return copy;
  };
  return put(config, keysIn(path));
}
