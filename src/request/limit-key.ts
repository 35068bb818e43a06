import { isRecord } from "../config/fields.ts";
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
 * Identifies the client in a program's call, by the values of the rule's key. A `LimitKey` is one
 * value, or a list with one value for each element of the key. If an element of the key has one
 * alternative, the value is a text, such as `"abc"` for `header:x-api-key`. If the element has
 * several alternatives, the value is an object with the name of one alternative, for example `{ ip:
 * "203.0.113.7" }` or `{ "header:x-api-key": "abc" }` for `header:x-api-key | ip`. `{ ip }` is
 * allowed for every element, because Weir uses the client's address if a request has none of the
 * alternatives.
 *
 * @example
 * await env.LIMITS.limit("api", { key: { "header:x-api-key": "abc" } }); // header:x-api-key | ip
 * await env.LIMITS.limit("export", { key: ["acme", "csv"] }); // ["custom:account", "custom:format"]
 */
export type LimitKey = LimitKeyValue | readonly LimitKeyValue[];

/** A text, or an object with the name of one alternative and its value. */
export type LimitKeyValue = string | Readonly<Record<string, string>>;

/**
 * The value that Weir uses if a program's call has no key. If the rule's key is `global`, such
 * calls share one counter with the gateway's requests.
 */
const GLOBAL: NamedValue = { name: "global", value: "global" };

/**
 * Returns the identity of the client in a program's call. A request with the same values has the
 * same identity in the gateway, so the call and the request use the same counter.
 *
 * @param key identifies the client; undefined for one counter that all calls without a key share
 * @param secret the secret for HMACs, if the gateway has such a secret
 * @throws {TypeError} if the values do not fit the rule's key. The error's message contains none of
 * these values
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
    throw createKeyError(rule, "the key", describeKey(rule.key));
  }
  const values = rule.key.map((_, index) => namedValue(rule, index, given[index], config));
  return hashValues(values, secret);
}

/**
 * Returns the canonical value of one element of a key, with the name of its alternative.
 *
 * @param index the position of the element in the rule's key
 * @throws {TypeError} if no alternative can have the value, or if no request can contain it
 */
function namedValue(rule: Rule, index: number, given: unknown, config: ValueOptions): NamedValue {
  const { part, value } = findAlternative(rule, index, given);
  const name = keyPartName(part);
  if (typeof value !== "string") throw createKeyError(rule, name, "a text");
  const canonical = value.length <= MAX_KEY_LENGTH && canonicalValue(part, value, rule, config);
  if (canonical && canonical.length <= MAX_KEY_LENGTH) return { name, value: canonical };
  throw createKeyError(rule, name, describeExpected(part, value));
}

function describeExpected(part: KeyPart, value: string): string {
  if (value.length > MAX_KEY_LENGTH) return `a text of up to ${MAX_KEY_LENGTH} characters`;
  const isEmpty = trimBlanks(value) === "" && part.kind !== "ip";
  return isEmpty ? "a text that is not empty" : expectedValue(part);
}

/**
 * Returns the alternative that a program's value belongs to, together with the value.
 *
 * @throws {TypeError} if the element has several alternatives and the value does not name one of
 * them
 */
function findAlternative(
  rule: Rule,
  index: number,
  given: unknown,
): { part: KeyPart; value: unknown } {
  const alternatives = rule.key[index] ?? [];
  const [first, ...others] = alternatives;
  if (isRecord(given)) {
    const [[name = "", value] = [], ...more] = Object.entries(given);
    const canonical = canonicalName(name);
    const part = [...alternatives, ADDRESS].find((each) => keyPartName(each) === canonical);
    if (part && more.length === 0) return { part, value };
  } else if (first && others.length === 0) {
    return { part: first, value: given };
  }
  const subject = rule.key.length === 1 ? "the key" : `value ${index + 1} of the key`;
  throw createKeyError(rule, subject, describeAlternatives(alternatives));
}

const ADDRESS: KeyPart = { kind: "ip" };

/**
 * Returns a name in the spelling of {@link keyPartName}. Programs may use any spelling that a
 * configuration may use.
 */
function canonicalName(name: string): string | undefined {
  const [part] = parseAlternatives(name) ?? [];
  return part && keyPartName(part);
}

function describeAlternatives(alternatives: readonly KeyPart[]): string {
  const names = new Set([...alternatives, ADDRESS].map(keyPartName));
  const quote = (name: string) => (/^\w+$/.test(name) ? name : JSON.stringify(name));
  return [...names].map((name) => `{ ${quote(name)}: "…" }`).join(" or ");
}

function createKeyError(rule: Rule, subject: string, expected: string): TypeError {
  return new TypeError(`For the rule "${rule.name}", ${subject} must be ${expected}.`);
}

/** Describes the values that a program passes for a key, for error messages. */
function describeKey(key: KeyExpression): string {
  const values = key.map((alternatives) => {
    const [first, ...others] = alternatives;
    return first && others.length === 0
      ? `a text for ${keyPartName(first)}`
      : describeAlternatives(alternatives);
  });
  return values.length === 1
    ? values.join()
    : `a list of ${values.length} values: ${values.join(", then ")}`;
}
