type OptionType = "string" | "boolean" | "any";
type OptionTypes = Readonly<Record<string, OptionType>>;

/** Options of every method. A key and a cost are checked where they are read. */
export const CLIENT_OPTIONS: OptionTypes = { key: "any", tier: "string" };
/** Options of `limit` and `check`. */
export const CHARGED_OPTIONS: OptionTypes = {
  ...CLIENT_OPTIONS,
  cost: "any",
  reserve: "boolean",
  throws: "boolean",
};

/**
 * Types do not cross a service binding. Options of another form, such as `limit("login", userId)`,
 * would leave out the key, and so charge the counter that all share.
 *
 * @throws {TypeError} for anything but a plain object of these options
 */
export function checkOptions(options: unknown, types: OptionTypes): void {
  const allowed = Object.keys(types).join(", ");
  if (!isPlainObject(options)) {
    throw new TypeError(`The options are an object with any of ${allowed}, such as { key: "…" }.`);
  }
  for (const [name, value] of Object.entries(options)) {
    const type = Object.hasOwn(types, name) ? types[name] : undefined;
    if (type === undefined) {
      throw new TypeError(`There is no such option. There are: ${allowed}.`);
    }
    const given = typeof value;
    if (type !== "any" && value !== undefined && given !== type) {
      throw new TypeError(`The option ${name} is a ${type}, not a ${given}.`);
    }
  }
  // A variable that was never set would charge the counter that all calls without a key share.
  if (Object.hasOwn(options, "key") && (options as { key?: unknown }).key === undefined) {
    throw new TypeError("The option key is undefined: leave it out for one counter for all.");
  }
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
