import * as v from "valibot";
import { faultText } from "./fault-text.ts";

/**
 * Reports names of a Map that mean the same, such as one host in two spellings.
 *
 * @param parse returns the canonical form of a name; undefined for a faulty name
 * @param same the words that follow the first spelling in the message, such as "is the same host"
 */
export function differentNames<Input>(
  parse: (name: string) => string | undefined,
  same: string,
): v.RawCheckAction<Input> {
  return v.rawCheck<Input>(({ dataset, addIssue }) => {
    const map: unknown = dataset.value;
    if (!(map instanceof Map)) return;
    const firsts = new Map<string, string>();
    for (const [key, value] of map as Map<string, unknown>) {
      const name = parse(key);
      const first = name && firsts.get(name);
      if (name && !first) firsts.set(name, key);
      if (!first) continue;
      addIssue({
        path: [{ type: "map", origin: "value", input: map, key, value }],
        input: value,
        message: faultText(() => `${JSON.stringify(first)} ${same}`),
      });
    }
  });
}
