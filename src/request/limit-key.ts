import {
  type KeyExpression,
  type KeyPart,
  MAX_KEY_LENGTH,
  parseAlternatives,
} from "../config/key-expression.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { hashOf, nameOf, type Present } from "./identity.ts";
import { countedValue, wantedValue } from "./limit-key-value.ts";
import { trimBlanks } from "./text-folding.ts";

/**
 * The client that a program means by a rule's key: one value, or a list with one for each element of
 * the key. A value is a text where its element has one alternative, as `"abc"` for
 * `header:x-api-key`. It is an object that names the alternative where there are several, as
 * `{ "header:x-api-key": "abc" }` or `{ ip: "203.0.113.7" }` for `header:x-api-key | ip`. `{ ip }` is
 * allowed for every element: requests without any of its alternatives are counted by address.
 */
export type LimitKey = LimitKeyValue | readonly LimitKeyValue[];

/** A text, or an object of one alternative's name and its value. */
export type LimitKeyValue = string | Readonly<Record<string, string>>;

/** A program that gives no key is counted by this one, and so with every request to a `global` rule. */
const EVERYONE: Present = { name: "global", value: "global" };

/**
 * The identity of a client that a program names, in place of a request. The gateway counts a request
 * with these values by the same identity, and so in the same counter.
 *
 * @param key undefined for one counter that all share
 * @param secret makes identities HMACs, if the gateway's are
 * @throws {TypeError} when the values do not fit the rule's key; says how, but quotes no value
 */
export async function identityOfLimitKey(
  rule: Rule,
  key: LimitKey | undefined,
  config: Canonical,
  secret?: string,
): Promise<string> {
  if (key === undefined) return hashOf([EVERYONE], secret);
  const values: unknown = Array.isArray(key) ? key : [key];
  // Types do not cross a service binding.
  if (!Array.isArray(values) || values.length !== rule.key.length) {
    const wanted = rule.key.length === 1 ? "a text" : `a list of ${rule.key.length} texts`;
    throw refused(rule, `is ${wanted}, for ${nameOfKey(rule.key)}`);
  }
  const parts = rule.key.map((alternatives, index) =>
    givenPart(rule, alternatives, values[index] as unknown, config),
  );
  return hashOf(parts, secret);
}

type Canonical = Pick<Config, "ipv6Prefix" | "caseSensitivePaths">;

/** @throws {TypeError} when the value is for no alternative, or none that a request could hold */
function givenPart(
  rule: Rule,
  alternatives: readonly KeyPart[],
  given: unknown,
  config: Canonical,
): Present {
  const { part, value } = chosen(rule, alternatives, given);
  if (typeof value !== "string") throw refused(rule, `is a text, for ${nameOf(part)}`);
  const counted = value.length <= MAX_KEY_LENGTH && countedValue(part, value, rule, config);
  if (counted && counted.length <= MAX_KEY_LENGTH) return { name: nameOf(part), value: counted };
  throw refused(rule, `needs ${wanted(part, value)} as ${nameOf(part)}`);
}

function wanted(part: KeyPart, value: string): string {
  if (value.length > MAX_KEY_LENGTH) return `a text of up to ${MAX_KEY_LENGTH} characters`;
  const isEmpty = trimBlanks(value) === "" && part.kind !== "ip";
  return isEmpty ? "a text that is not empty" : wantedValue(part);
}

/** The alternative that a value is for. */
function chosen(
  rule: Pick<Rule, "name">,
  alternatives: readonly KeyPart[],
  given: unknown,
): { part: KeyPart; value: unknown } {
  const [only, ...others] = alternatives;
  if (isPlainObject(given)) {
    const [[name = "", value] = [], ...more] = Object.entries(given);
    const part = [...alternatives, ADDRESS].find((each) => nameOf(each) === canonicalName(name));
    if (part && more.length === 0) return { part, value };
  } else if (only && others.length === 0) {
    return { part: only, value: given };
  }
  throw refused(rule, `names one of ${examplesOf(alternatives)}`);
}

const ADDRESS: KeyPart = { kind: "ip" };

/** A name as a rule may write it, in the form in which the rule's are kept. */
function canonicalName(name: string): string | undefined {
  const [part] = parseAlternatives(name) ?? [];
  return part && nameOf(part);
}

function examplesOf(alternatives: readonly KeyPart[]): string {
  const names = new Set([...alternatives, ADDRESS].map(nameOf));
  const written = (name: string) => (/^\w+$/.test(name) ? name : JSON.stringify(name));
  return [...names].map((name) => `{ ${written(name)}: "…" }`).join(", ");
}

function refused({ name }: Pick<Rule, "name">, what: string): TypeError {
  return new TypeError(`The key for the rule "${name}" ${what}.`);
}

function isPlainObject(value: unknown): value is object {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function nameOfKey(key: KeyExpression): string {
  return key.map((alternatives) => alternatives.map(nameOf).join(" | ")).join(", ");
}
