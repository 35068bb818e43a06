import { type FieldPath, fieldPath } from "./field-path.ts";
import { LogError } from "./log-error.ts";

/** What the fields of JSON lines can state. The same list is in docs/logs.md. */
const FACTS = [
  "time",
  "method",
  "url",
  "path",
  "target",
  "query",
  "request",
  "host",
  "ip",
  "status",
  "user-agent",
  "country",
  "asn",
  "ja4",
  "bot",
  "body-bytes",
  "duration",
  "duration-seconds",
] as const;

export type FactName = (typeof FACTS)[number];

/** Names of facts for header fields. */
const HEADER = /^(?:response-)?header:[\w!#$%&'*+.^`|~-]{1,100}$/;

/** Other names of the same facts. */
const SYNONYMS: Readonly<Record<string, string>> = { path: "url", target: "url" };

/** The path of the field of each fact, by the fact's name. Names of header fields are in lower case. */
export type FieldMap = ReadonlyMap<string, FieldPath>;

/**
 * Checks the names of facts, and parses the paths.
 *
 * @throws {LogError} if there is no such fact
 */
export function fieldMap(map: Iterable<readonly [fact: string, path: string]>): FieldMap {
  const fields = new Map<string, FieldPath>();
  for (const [given, path] of map) {
    const fact = given.toLowerCase();
    if (!(FACTS as readonly string[]).includes(fact) && !HEADER.test(fact)) {
      throw new LogError(
        `--map: there is no fact "${given.slice(0, 100)}". Allowed: ${FACTS.join(", ")}, header:NAME, response-header:NAME.`,
      );
    }
    const parsed = fieldPath(path);
    if (parsed.includes("")) {
      throw new LogError(
        `--map ${given}: the path "${path.slice(0, 100)}" has an empty name. Allowed: names with dots between them, such as request.uri; a dot inside a name is \\.`,
      );
    }
    fields.set(SYNONYMS[fact] ?? fact, parsed);
  }
  return fields;
}
