import type { Conditions } from "../config/conditions.ts";
import type { Rule } from "../config/rule.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { createMatcher } from "../request/matcher.ts";
import type { ExplainedCondition } from "./explanation.ts";

/** A condition of a rule on its own, and its result for a request. */
export interface TestedCondition {
  /** The path of the field, such as `match.methods` or `match.except.query.export`. */
  readonly field: string;
  readonly condition: Conditions;
  readonly isException: boolean;
  readonly result: ExplainedCondition["result"];
}

type Condition = Omit<TestedCondition, "result">;

/**
 * Tests each condition of each rule on its own.
 *
 * The matcher itself tests them: each condition becomes the only one of a rule, once in `match` and once in
 * `except`. A condition whose result is unknown fulfils `match`, but not `except`. One matcher tests all
 * conditions, so that the path and the query are read once.
 *
 * @returns the conditions of each rule in the order in which the matcher tests them
 */
export function testConditions(
  rules: readonly Rule[],
  request: CanonicalRequest,
  caseSensitivePaths: boolean,
): Map<Rule, TestedCondition[]> {
  // A preflight matches only rules that name OPTIONS.
  const methods = request.isPreflight ? ["OPTIONS"] : undefined;
  const probes = rules.flatMap((rule) =>
    conditionsOf(rule).map((condition) => ({
      rule,
      condition,
      selecting: { ...rule, match: { methods, ...condition.condition } },
      excepting: { ...rule, match: { methods, except: condition.condition } },
    })),
  );
  const candidates = probes.flatMap(({ selecting, excepting }) => [selecting, excepting]);
  const matches = createMatcher(candidates, caseSensitivePaths)(request);
  const matching = new Set(matches.map(({ rule }) => rule));
  const tested = new Map(rules.map((rule) => [rule, [] as TestedCondition[]]));
  for (const { rule, condition, selecting, excepting } of probes) {
    const result = !matching.has(selecting)
      ? "fails"
      : matching.has(excepting)
        ? "unknown"
        : "holds";
    tested.get(rule)?.push({ ...condition, result });
  }
  return tested;
}

function conditionsOf({ match: { except, ...match } }: Rule): Condition[] {
  const { paths, hosts, methods, ...others } = match;
  return [
    ...singleConditions({ paths, hosts, methods }, "match", false),
    ...singleConditions(except ?? {}, "match.except", true),
    ...singleConditions(others, "match", false),
  ];
}

function singleConditions(all: Conditions, path: string, isException: boolean): Condition[] {
  const { paths, hosts, methods, headers = [], query = [], ips, countries, asns, bots } = all;
  const single = (name: string, condition: Conditions): Condition[] =>
    Object.values(condition).every((value) => value === undefined)
      ? []
      : [{ field: `${path}.${name}`, condition, isException }];
  return [
    ...single("paths", { paths }),
    ...single("hosts", { hosts }),
    ...single("methods", { methods }),
    ...headers.flatMap((each) => single(`headers.${each.name}`, { headers: [each] })),
    ...query.flatMap((each) => single(`query.${each.name}`, { query: [each] })),
    ...single("ips", { ips }),
    ...single("countries", { countries }),
    ...single("asns", { asns }),
    ...single("bots", { bots }),
  ];
}
