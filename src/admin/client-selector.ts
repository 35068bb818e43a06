import { type KeyPart, MAX_KEY_LENGTH, parseAlternatives } from "../config/key.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { describeFaults } from "../overrides/override-input.ts";
import { IDENTITY_FORM, isIdentity, keyPartName } from "../request/identity.ts";
import { identityOfLimitKey, type LimitKeyValue } from "../request/limit-key.ts";
import { type ClientSelector, type InputFault, OperationError } from "./operations.ts";

/** A client under one rule. */
export interface SelectedClient {
  readonly rule: Rule;
  readonly identity: string;
  /** The names of the values by which the client was found; undefined for an identity. */
  readonly countedBy?: string;
}

/** The maximum number of values that an operator may name. */
const MAX_KNOWN = 16;
/** The maximum number of identities under one rule, if its key has several elements with alternatives. */
const MAX_IDENTITIES = 32;

/**
 * Returns the clients whom a selector can mean: under each rule, one for each alternative of the key whose
 * value is known. So an operator need not know which alternative has counted the client.
 *
 * @throws {OperationError} if no rule can count the client, or if a value is faulty. The messages contain none of
 * the values
 */
export async function selectClients(
  selector: ClientSelector,
  rules: readonly Rule[],
  config: Config,
  keySecret: string | undefined,
): Promise<SelectedClient[]> {
  if ("client" in selector) {
    const { client: identity } = selector;
    if (isIdentity(identity)) return rules.map((rule) => ({ rule, identity }));
    throw faulty("client", `must be ${IDENTITY_FORM}.`);
  }
  const known = readKnown(selector.known);
  const selected: SelectedClient[] = [];
  const faults = new Map<string, InputFault>();
  for (const rule of rules) {
    for (const values of combinationsFor(rule, known)) {
      try {
        const key = values.map(([name, value]): LimitKeyValue => ({ [name]: value }));
        const identity = await identityOfLimitKey(rule, key, config, keySecret);
        selected.push({ rule, identity, countedBy: values.map(([name]) => name).join(", ") });
      } catch (error) {
        if (!(error instanceof TypeError)) throw error;
        faults.set(error.message, { path: "known", message: error.message });
      }
    }
  }
  if (selected.length > 0) return selected;
  if (faults.size > 0) {
    const all = [...faults.values()];
    throw new OperationError("invalid", describeFaults(all), all);
  }
  throw faulty("known", `must have values for the whole key of a rule: ${keysOf(rules)}.`);
}

/** @returns the values by the names of the parts of keys, such as `header:x-api-key` */
function readKnown(known: Readonly<Record<string, string>>): Map<string, string> {
  const entries = Object.entries(known);
  if (entries.length === 0) throw faulty("known", "must have at least one value.");
  if (entries.length > MAX_KNOWN) throw faulty("known", `must have at most ${MAX_KNOWN} values.`);
  const values = new Map<string, string>();
  for (const [name, value] of entries) {
    const [part, ...others] = parseAlternatives(name) ?? [];
    // A name that an operator has misspelt may be a value, so it is not repeated.
    if (!part || others.length > 0) {
      throw faulty("known", 'must have names as in a key, such as "ip" or "header:x-api-key".');
    }
    if (value === "" || value.length > MAX_KEY_LENGTH) {
      throw faulty("known", `must have texts of 1 to ${MAX_KEY_LENGTH} characters.`);
    }
    values.set(keyPartName(part), value);
  }
  return values;
}

const ADDRESS: KeyPart = { kind: "ip" };
/** The kinds of key that every request has. */
const ALWAYS_THERE: ReadonlySet<KeyPart["kind"]> = new Set([
  "ip",
  "host",
  "path",
  "method",
  "global",
]);

type NamedKnown = readonly [name: string, value: string];

/** Returns every choice of one known alternative for each element of the rule's key. */
function combinationsFor(rule: Rule, known: ReadonlyMap<string, string>): NamedKnown[][] {
  let combinations: NamedKnown[][] = [[]];
  for (const alternatives of rule.key) {
    // If a request has none of the alternatives, Weir counts it by its address.
    const isAlwaysThere = alternatives.some(({ kind }) => ALWAYS_THERE.has(kind));
    const names = new Set(
      (isAlwaysThere ? alternatives : [...alternatives, ADDRESS]).map(keyPartName),
    );
    const choices = [...names].flatMap((name): NamedKnown[] => {
      const value = name === "global" ? "global" : known.get(name);
      return value === undefined ? [] : [[name, value]];
    });
    combinations = combinations.flatMap((each) => choices.map((choice) => [...each, choice]));
    combinations = combinations.slice(0, MAX_IDENTITIES);
  }
  return combinations;
}

/** The maximum number of rules that a message lists. */
const MAX_LISTED = 20;

function keysOf(rules: readonly Rule[]): string {
  const listed = rules.slice(0, MAX_LISTED).map((rule) => `${rule.name} (${formatKey(rule)})`);
  return listed.join(", ") + (rules.length > MAX_LISTED ? ", …" : "");
}

/** Formats a key as in a configuration. Elements that identify a client together are joined by commas. */
export function formatKey({ key }: Pick<Rule, "key">): string {
  return key.map((alternatives) => alternatives.map(keyPartName).join(" | ")).join(", ");
}

function faulty(path: string, message: string): OperationError {
  return new OperationError("invalid", `${path} ${message}`, [{ path, message }]);
}
