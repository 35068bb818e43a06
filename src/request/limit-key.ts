import {
  type KeyExpression,
  type KeyPart,
  MAX_KEY_LENGTH,
  parseAlternatives,
} from "../config/key-expression.ts";
import type { Rule } from "../config/rule.ts";
import { hashValues, keyPartName, type NamedValue } from "./identity.ts";
import { canonicalValue, expectedValue, type ValueOptions } from "./limit-key-value.ts";
import { trimBlanks } from "./text-folding.ts";

/**
 * The client that a program names by a rule's key: one value, or a list with a value for each element of
 * the key. For an element with one alternative, a value is a text, as `"abc"` for `header:x-api-key`.
 * For an element with several, it is an object that names the alternative, as
 * `{ "header:x-api-key": "abc" }` or `{ ip: "203.0.113.7" }` for `header:x-api-key | ip`. `{ ip }` is
 * allowed for every element, because requests without any alternative are counted by their address.
 */
export type LimitKey = LimitKeyValue | readonly LimitKeyValue[];

/** A text, or an object with the name of one alternative and its value. */
export type LimitKeyValue = string | Readonly<Record<string, string>>;

/** The values of a call without a key. It shares its counter with the requests of a `global` rule. */
const GLOBAL: NamedValue = { name: "global", value: "global" };

/**
 * The identity of a client that a program names, without a request. The gateway gives a request with
 * these values the same identity, so both use the same counter.
 *
 * @param key undefined for one counter that all callers share
 * @param secret the secret for HMACs, if the gateway has one
 * @throws {TypeError} when the values do not fit the rule's key. The message quotes no value
 */
export async function identityOfLimitKey(
  rule: Rule,
  key: LimitKey | undefined,
  config: ValueOptions,
  secret?: string,
): Promise<string> {
  if (key === undefined) return hashValues([GLOBAL], secret);
  const given: unknown = Array.isArray(key) ? key : [key];
  // TypeScript does not check calls over a service binding.
  if (!Array.isArray(given) || given.length !== rule.key.length) {
    const expected = rule.key.length === 1 ? "a text" : `a list of ${rule.key.length} texts`;
    throw createKeyError(rule, `is ${expected}, for ${describeKey(rule.key)}`);
  }
  const values = rule.key.map((alternatives, index) =>
    namedValue(rule, alternatives, given[index] as unknown, config),
  );
  return hashValues(values, secret);
}

/** @throws {TypeError} when no alternative can have the value, or when no request can carry it */
function namedValue(
  rule: Rule,
  alternatives: readonly KeyPart[],
  given: unknown,
  config: ValueOptions,
): NamedValue {
  const { part, value } = findAlternative(rule, alternatives, given);
  const name = keyPartName(part);
  if (typeof value !== "string") throw createKeyError(rule, `is a text, for ${name}`);
  const canonical = value.length <= MAX_KEY_LENGTH && canonicalValue(part, value, rule, config);
  if (canonical && canonical.length <= MAX_KEY_LENGTH) return { name, value: canonical };
  throw createKeyError(rule, `needs ${describeExpected(part, value)} as ${name}`);
}

function describeExpected(part: KeyPart, value: string): string {
  if (value.length > MAX_KEY_LENGTH) return `a text of up to ${MAX_KEY_LENGTH} characters`;
  const isEmpty = trimBlanks(value) === "" && part.kind !== "ip";
  return isEmpty ? "a text that is not empty" : expectedValue(part);
}

/**
 * The alternative that a program's value is for, and the value.
 *
 * @throws {TypeError} when the value does not name one of several alternatives
 */
function findAlternative(
  rule: Pick<Rule, "name">,
  alternatives: readonly KeyPart[],
  given: unknown,
): { part: KeyPart; value: unknown } {
  const [first, ...others] = alternatives;
  if (isPlainObject(given)) {
    const [[name = "", value] = [], ...more] = Object.entries(given);
    const canonical = canonicalName(name);
    const part = [...alternatives, ADDRESS].find((each) => keyPartName(each) === canonical);
    if (part && more.length === 0) return { part, value };
  } else if (first && others.length === 0) {
    return { part: first, value: given };
  }
  throw createKeyError(rule, `names one of ${describeAlternatives(alternatives)}`);
}

const ADDRESS: KeyPart = { kind: "ip" };

/** A name in the spelling of {@link keyPartName}. Programs may use any spelling that a rule may use. */
function canonicalName(name: string): string | undefined {
  const [part] = parseAlternatives(name) ?? [];
  return part && keyPartName(part);
}

function describeAlternatives(alternatives: readonly KeyPart[]): string {
  const names = new Set([...alternatives, ADDRESS].map(keyPartName));
  const quote = (name: string) => (/^\w+$/.test(name) ? name : JSON.stringify(name));
  return [...names].map((name) => `{ ${quote(name)}: "…" }`).join(", ");
}

function createKeyError({ name }: Pick<Rule, "name">, problem: string): TypeError {
  return new TypeError(`The key for the rule "${name}" ${problem}.`);
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function describeKey(key: KeyExpression): string {
  return key.map((alternatives) => alternatives.map(keyPartName).join(" | ")).join(", ");
}
