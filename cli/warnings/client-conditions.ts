import type { Conditions } from "../../src/config/conditions.ts";
import type { Match } from "../../src/config/match.ts";

/** The fields of conditions that a comparison of hosts, methods and routes leaves out. */
const FIELDS = ["headers", "query", "ips", "countries", "asns", "bots"] as const;

/** The texts of these fields, for comparisons. */
export type ConditionTexts = ReadonlyMap<string, string>;

/** Returns the conditions besides hosts, methods and paths, each as a text for comparisons. */
export function conditionTextsOf(conditions: Conditions): ConditionTexts {
  return new Map(
    FIELDS.filter((field) => conditions[field] !== undefined).map((field) => [
      field,
      textOf(conditions[field]),
    ]),
  );
}

/**
 * Whether every request for which the narrow conditions hold provably also meets the wide ones. Two
 * different conditions on one field are not compared.
 */
export function areIncluded(wide: ConditionTexts, narrow: ConditionTexts): boolean {
  return [...wide].every(([field, text]) => narrow.get(field) === text);
}

/** The order of a list has no meaning. */
function textOf(condition: unknown): string {
  const plain: unknown = JSON.parse(JSON.stringify(condition));
  return Array.isArray(plain)
    ? plain
        .map((item) => JSON.stringify(item))
        .sort()
        .join()
    : JSON.stringify(plain);
}

/** Whether a client can choose whether these conditions hold, because all depend on what it sends. */
export function isChosenByClient(conditions: Conditions): boolean {
  return conditions.headers !== undefined || conditions.query !== undefined;
}

/** Whether a client cannot change whether one of these conditions holds. */
export function isBoundToClient({ ips, countries, asns, bots }: Conditions): boolean {
  return [ips, countries, asns, bots].some((condition) => condition !== undefined);
}

/** Returns conditions without those that clients choose. */
export function withoutChosen({ headers: _, query: __, ...match }: Match): Match {
  return match;
}
