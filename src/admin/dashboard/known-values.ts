import type { KeyPart } from "../../config/key-expression.ts";
import type { Config } from "../../config/schema.ts";

/** The alternatives in the keys of all rules, such as `ip` and `header:x-api-key`, without duplicates. */
export function alternativesOf({ rules }: Pick<Config, "rules">): string[] {
  // Weir counts a client by its address if a request has no alternative of a key.
  const names = new Set(["ip"]);
  for (const { key } of rules) {
    for (const part of key.flat()) names.add(nameOf(part));
  }
  names.delete("global");
  return [...names];
}

function nameOf(part: KeyPart): string {
  return "name" in part ? `${part.kind}:${part.name}` : part.kind;
}
