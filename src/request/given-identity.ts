import type { KeyExpression, KeyPart } from "../config/key-expression.ts";
import { parseAddress } from "../config/network.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import { canonicalPath } from "./canonical-path.ts";
import { bareValue, headerValue } from "./carried.ts";
import { clientAddress } from "./client-address.ts";
import { hashOf, type Present } from "./identity.ts";
import { foldText } from "./text-forms.ts";

/** Who is counted, as a program says it: a text, or one for each element of the rule's key. */
export type GivenKey = string | readonly string[];

/** Whoever gives no key is counted by this one, and so with every request to a `global` rule. */
const EVERYONE: Present = { name: "global", value: "global" };

/**
 * Who is counted, where a program says it and no request does. Each value stands for the first
 * alternative of its element of the rule's key: what the gateway would count a request by that
 * carries it, and in the same counter.
 *
 * @param key undefined for one counter that all share
 * @throws {TypeError} when the values do not fit the rule's key; says how, but quotes no value
 */
export async function givenIdentity(
  rule: Pick<Rule, "name" | "key">,
  key: GivenKey | undefined,
  config: Pick<Config, "ipv6Prefix" | "caseSensitivePaths">,
): Promise<string> {
  if (key === undefined) return hashOf([EVERYONE]);
  const values: unknown = typeof key === "string" ? [key] : key;
  const listed = nameOfKey(rule.key);
  // Types do not cross a service binding.
  if (!Array.isArray(values) || values.length !== rule.key.length) {
    const wanted = rule.key.length === 1 ? "a text" : `a list of ${rule.key.length} texts`;
    throw new TypeError(`The key for the rule "${rule.name}" is ${wanted}, for ${listed}.`);
  }
  const parts = rule.key.map(([part], index): Present => {
    const value: unknown = values[index];
    const held = part && typeof value === "string" ? asCounted(part, value, config) : undefined;
    if (part && held) return { name: nameOf(part), value: held };
    const wanted = part?.kind === "ip" ? "an IP address" : "a text that is not empty";
    throw new TypeError(
      `The key for the rule "${rule.name}" needs ${wanted} as ${part && nameOf(part)}.`,
    );
  });
  return hashOf(parts);
}

/** A value in the form in which the gateway counts it; undefined or empty when it cannot be one. */
function asCounted(
  part: KeyPart,
  value: string,
  { ipv6Prefix, caseSensitivePaths }: Pick<Config, "ipv6Prefix" | "caseSensitivePaths">,
): string | undefined {
  switch (part.kind) {
    case "ip": {
      const address = parseAddress(value.trim())?.toString();
      return address && clientAddress(new Headers({ "cf-connecting-ip": address }), ipv6Prefix);
    }
    case "header":
      return headerValue(part.name, value);
    case "cookie":
    case "query":
      return bareValue(value);
    case "path":
      return canonicalPath(value, caseSensitivePaths).path;
    case "param":
      return foldText(value, caseSensitivePaths);
    case "host":
      return value.toLowerCase().replace(/\.+$/, "");
    case "method": {
      const method = value.toUpperCase();
      return method === "HEAD" ? "GET" : method;
    }
    default:
      return value;
  }
}

function nameOfKey(key: KeyExpression): string {
  return key.map(([part]) => part && nameOf(part)).join(", ");
}

function nameOf(part: KeyPart): string {
  return "name" in part ? `${part.kind}:${part.name}` : part.kind;
}
