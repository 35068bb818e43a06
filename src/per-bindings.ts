import { bindingNames } from "./config/binding-names.ts";
import type { Env } from "./config/env.ts";
import type { Config } from "./config/schema.ts";

/** A value, and the bindings for which it was created. */
interface Entry<Value> {
  /** The bindings that Weir reads, in the order of their names. */
  readonly bindings: readonly unknown[];
  readonly value: Value;
}

/**
 * The maximum number of values of a configuration. Outside tests, an isolate has only one set of
 * bindings. If there are more sets than this maximum, the oldest value is dropped.
 */
const MAX_VALUES = 8;

const NO_BINDINGS: Env = {};

/**
 * Returns a function that creates one value for each set of bindings, and returns this value again
 * for the same bindings. A caller may pass no bindings first, or pass a new object for each request,
 * as some frameworks do. So the function compares only the bindings that Weir reads.
 *
 * @param create creates the value for a set of bindings
 */
export function perBindings<Value>(
  config: Config,
  create: (env: Env) => Value,
): (env: object | null | undefined) => Value {
  const names = bindingNames(config);
  let entries: readonly Entry<Value>[] = [];
  let lastEnv: Env | undefined;
  let lastValue: Value;
  return (given) => {
    const env = (given ?? NO_BINDINGS) as Env;
    if (env === lastEnv) return lastValue;
    const bindings = names.map((name) => env[name]);
    const match = entries.find((entry) => isEqual(entry.bindings, bindings));
    const entry = match ?? { bindings, value: create(env) };
    if (!match) entries = [...entries, entry].slice(-MAX_VALUES);
    lastEnv = env;
    lastValue = entry.value;
    return lastValue;
  };
}

function isEqual(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.every((value, index) => value === other[index]);
}
