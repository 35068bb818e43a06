import type { KeyPart } from "../../src/config/key.ts";
import type { Conditions } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";

// What parts of a request a rule reads.

const FROM_PATH: readonly KeyPart["kind"][] = ["path", "param"];

/** Whether the conditions of a rule read only the host, the method and the path of a request. */
export function matchesByPlace({ match }: Rule): boolean {
  return conditionsOf(match).every(({ headers, query, ips, countries, asns, bots }) =>
    [headers, query, ips, countries, asns, bots].every((each) => each === undefined),
  );
}

/** Whether a rule reads the path of a request. */
export function readsPath({ match, key, tiers }: Rule): boolean {
  const parts = [...key, ...(tiers?.by ?? [])].flat();
  return (
    conditionsOf(match).some(({ paths }) => paths !== undefined) ||
    parts.some(({ kind }) => FROM_PATH.includes(kind))
  );
}

function conditionsOf({ except, ...match }: Rule["match"]): Conditions[] {
  return except ? [match, except] : [match];
}
