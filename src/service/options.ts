import { isRecord } from "../config/fields.ts";
import { MAX_LIMIT } from "../config/window.ts";
import type { LimitKey } from "../request/limit-key.ts";

/** Options of the method `getValue` of `WeirService`. They select a client. */
export interface ClientOptions {
  /**
   * Identifies the client by a value for the rule's key, or by a list with one value for each of
   * the key's elements; see {@link LimitKey}.
   *
   * @default one counter that all calls without a key share
   * @example { ip: "203.0.113.7" }
   */
  readonly key?: LimitKey;
  /**
   * The client's tier. If the rule has no tier of this name, the rule's own limits apply.
   *
   * @default the rule's own limits
   */
  readonly tier?: string;
}

/** Options of the method `check` of `WeirService`. */
export interface CheckOptions extends ClientOptions {
  /**
   * Quota to check for, a whole number from 0 to 999,999,999,999,999.
   *
   * @default the rule's `cost` or `reserve` if it is a number, else its `default`, else 1
   */
  readonly cost?: number;
  /**
   * Whether to count quota of later windows as available, up to the rule's `maxReserved`.
   *
   * @default false
   */
  readonly reserve?: boolean;
  /**
   * Whether to throw an error instead of returning `ok: false`.
   *
   * @default false
   */
  readonly throws?: boolean;
}

/** Options of the method `limit` of `WeirService`. */
export interface LimitOptions extends CheckOptions {
  /**
   * Quota to take, a whole number from -999,999,999,999,999 to 999,999,999,999,999. A negative cost
   * gives quota back, at most as much as was used; the result is then always `ok`.
   *
   * @default the rule's `cost` or `reserve` if it is a number, else its `default`, else 1
   */
  readonly cost?: number;
}

type OptionType = "string" | "boolean" | "any";
type OptionTypes = Readonly<Record<string, OptionType>>;

/** The types of the options that select a client. "any": the code that reads the option checks its type. */
export const CLIENT_OPTIONS: OptionTypes = { key: "any", tier: "string" };
/** The types of the options of `limit` and `check`. */
export const CHARGED_OPTIONS: OptionTypes = {
  ...CLIENT_OPTIONS,
  cost: "any",
  reserve: "boolean",
  throws: "boolean",
};

/**
 * Checks the options of a call, because TypeScript does not check calls over a service binding. For example,
 * `limit("login", userId)` has no key, and would charge the counter of all calls without a key.
 *
 * @throws {TypeError} unless `options` is a plain object with only these options and types
 */
export function checkOptions(options: unknown, types: OptionTypes): void {
  const allowed = Object.keys(types).join(", ");
  if (!isRecord(options)) {
    throw new TypeError(
      `The options must be an object with any of ${allowed}, such as { key: "…" }.`,
    );
  }
  for (const [name, value] of Object.entries(options)) {
    const type = Object.hasOwn(types, name) ? types[name] : undefined;
    if (type === undefined) {
      const shown = PRINTABLE_NAME.test(name) ? ` "${name}"` : " of this name";
      throw new TypeError(`There is no option${shown}. The options are: ${allowed}.`);
    }
    const given = typeof value;
    if (type !== "any" && value !== undefined && given !== type) {
      throw new TypeError(`The option ${name} must be a ${type}, not a ${given}.`);
    }
  }
  // The key may be a variable that was never set. Such a call would charge the counter of all calls without a key.
  if (Object.hasOwn(options, "key") && (options as { key?: unknown }).key === undefined) {
    throw new TypeError(
      "The option key is undefined. Leave it out to use the counter that all calls without a key share.",
    );
  }
}

/**
 * Checks the cost of a call.
 *
 * @param minimum the smallest allowed cost
 * @throws {RangeError} unless the cost is undefined or a whole number from `minimum` to the largest limit
 */
export function checkCost(cost: unknown, minimum: number): void {
  if (cost === undefined) return;
  if (Number.isInteger(cost) && (cost as number) >= minimum && (cost as number) <= MAX_LIMIT) {
    return;
  }
  throw new RangeError(
    `The cost must be a whole number from ${minimum} to ${MAX_LIMIT}, not ${describe(cost)}.`,
  );
}

/**
 * Matches the names of unknown options that an error message may repeat. Any other name may be a client's key, and
 * Weir prints no keys.
 */
const PRINTABLE_NAME = /^[a-z_]\w{0,15}$/i;

/** Describes a value for an error message. Repeats only numbers and short texts of digits. */
function describe(value: unknown): string {
  if (typeof value === "number" || value === null) return String(value);
  if (typeof value !== "string") return `a value of type ${typeof value}`;
  return /^[-+.\d]{0,15}$/.test(value) ? `the text "${value}"` : "a text";
}
