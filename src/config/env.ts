/** A Worker's bindings, as its handler receives them. Their values are not checked. */
export type Env = Readonly<Record<string, unknown>>;

/** Returns a var or secret without white space at its ends; undefined if it is missing or blank. */
export function textVar(env: Env, name: string): string | undefined {
  const value = env[name];
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

export function isObject(value: unknown): value is object {
  return (typeof value === "object" || typeof value === "function") && value !== null;
}
