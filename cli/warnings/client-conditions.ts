import type { Conditions } from "../../src/config/conditions.ts";
import type { Match } from "../../src/config/match.ts";

/** The conditions other than hosts, methods and paths. */
const FIELDS = ["headers", "query", "ips", "countries", "asns", "bots"] as const;

/** Conditions as texts, by the names of their fields. */
export type ConditionTexts = ReadonlyMap<string, string>;

/**
 * Returns the conditions other than hosts, methods and paths. Equal conditions have equal texts.
 */
export function conditionTextsOf(conditions: Conditions): ConditionTexts {
  return new Map(
    FIELDS.filter((field) => conditions[field] !== undefined).map((field) => [
      field,
      textOf(conditions[field]),
    ]),
  );
}

/**
 * Whether every request that meets the narrow conditions certainly also meets the wide ones. Two
 * different conditions on one field count as not included, because this function does not compare
 * values.
 */
export function areIncluded(wide: ConditionTexts, narrow: ConditionTexts): boolean {
  return [...wide].every(([field, text]) => narrow.get(field) === text);
}

/** Returns the same text for lists that differ only in their order. */
function textOf(condition: unknown): string {
  const plain: unknown = JSON.parse(JSON.stringify(condition));
  return Array.isArray(plain)
    ? plain
        .map((item) => JSON.stringify(item))
        .sort()
        .join()
    : JSON.stringify(plain);
}

/**
 * Whether one of these conditions reads a value that clients choose: a header field or a query
 * parameter.
 */
export function isChosenByClient(conditions: Conditions): boolean {
  return conditions.headers !== undefined || conditions.query !== undefined;
}

/**
 * Whether one of these conditions reads a fact that clients cannot choose, such as their country.
 */
export function isBoundToClient({ ips, countries, asns, bots }: Conditions): boolean {
  return [ips, countries, asns, bots].some((condition) => condition !== undefined);
}

/** Returns conditions without those that clients choose. */
export function withoutChosen({ headers: _, query: __, ...match }: Match): Match {
  return match;
}
