import { type DeploymentMode, rulesInMode } from "../config/deployment-mode.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { LiveOverrides } from "../overrides/live-overrides.ts";
import type { CanonicalRequest } from "../request/canonical-request.ts";
import { createMatcher, type RuleMatch } from "../request/matcher.ts";
import {
  fieldsWithSecrets,
  type TestedCondition,
  testConditions,
  valueField,
} from "./condition-results.ts";
import { textsOf } from "./condition-texts.ts";
import type { ExplainedCondition } from "./explanation.ts";
import { createRouteTest } from "./literal-start.ts";
import { noteOf } from "./near-misses.ts";
import { NearPaths } from "./near-path.ts";

/** A rule of the configuration, and whether it matches a request before the client is identified. */
export interface MatchedRule {
  readonly rule: Rule;
  /** The conditions up to the first that fails. */
  readonly conditions: readonly ExplainedCondition[];
  /** The match, with the override of the rule; undefined if the rule does not match. */
  readonly match: RuleMatch | undefined;
  /** The rule in the deployment's mode and with its override; undefined if it is off. */
  readonly active: Rule | undefined;
  /** Why the rule does not match; empty if it matches. */
  readonly why: string;
}

/** What the conditions of all rules are explained with. */
interface MatchFacts {
  readonly request: CanonicalRequest;
  readonly nearPaths: NearPaths;
  /** The fields whose values may be texts of the configuration, such as `headers.x-plan`. */
  readonly secretFields: ReadonlySet<string>;
}

/** Finds the rules that match a request, and for each other rule the first condition that fails. */
export function matchRules(
  { rules, caseSensitivePaths }: Pick<Config, "rules" | "caseSensitivePaths">,
  request: CanonicalRequest,
  mode: DeploymentMode,
  live: LiveOverrides,
  now: number,
): MatchedRule[] {
  const inMode = new Map(rules.map((rule) => [rule, rulesInMode([rule], mode)[0]] as const));
  const candidates = [...inMode.values()].filter(
    (rule) => rule !== undefined && rule.for === "all",
  );
  const mayMatch = createRouteTest(request, caseSensitivePaths);
  const near = new Set((candidates as Rule[]).filter(({ match }) => mayMatch(match.paths)));
  const matches = new Map(
    createMatcher([...near], caseSensitivePaths)(request).map((match) => [match.rule, match]),
  );
  const tested = testConditions(candidates as Rule[], request, caseSensitivePaths, near);
  const facts: MatchFacts = {
    request,
    nearPaths: new NearPaths(request, caseSensitivePaths),
    secretFields: fieldsWithSecrets(tested.values()),
  };
  return rules.map((rule): MatchedRule => {
    const own = inMode.get(rule);
    const active = own && live.ruleOf(own, now);
    const base = { rule, active };
    if (!own) {
      return { ...base, ...withoutMatch([OFF], "WEIR_MODE is off, so no rule applies.") };
    }
    if (own.for === "programs") {
      return { ...base, ...withoutMatch([PROGRAMS], "It counts only calls of programs.") };
    }
    const found = matches.get(own);
    const conditions = explainConditions(rule, tested.get(own) ?? [], facts);
    if (!found) return { ...base, ...withoutMatch(conditions, whyNot(conditions)) };
    const [match] = live.matchesOf([found], now);
    if (match) return { ...base, conditions, match, why: "" };
    return {
      ...base,
      ...withoutMatch([...conditions, OVERRIDE], "An override has turned the rule off."),
    };
  });
}

const OFF: ExplainedCondition = {
  field: "WEIR_MODE",
  result: "fails",
  actual: "off",
  expected: "enforce or shadow",
};
const PROGRAMS: ExplainedCondition = {
  field: "for",
  result: "fails",
  actual: "an HTTP request",
  expected: "a call of a program",
};
const OVERRIDE: ExplainedCondition = {
  field: "override",
  result: "fails",
  actual: "an override that turns the rule off",
  expected: "no such override",
};

function withoutMatch(conditions: readonly ExplainedCondition[], why: string) {
  return { conditions, match: undefined, why };
}

/** Returns the conditions up to the first because of which the rule does not match. */
function explainConditions(
  rule: Rule,
  tested: readonly TestedCondition[],
  { request, nearPaths, secretFields }: MatchFacts,
): ExplainedCondition[] {
  const explained: ExplainedCondition[] = [];
  const lastException = tested.findLast(({ isException }) => isException);
  const isRefused = request.isPreflight && !rule.match.methods?.includes("OPTIONS");
  let isExcepted = true;
  for (const each of tested) {
    const { field, condition, isException, result } = each;
    if (isRefused && field !== "match.paths") break;
    if (isException && !isExcepted) continue;
    const note = noteOf(each, request, nearPaths);
    const texts = textsOf(condition, request, secretFields.has(valueField(field)));
    explained.push({ field, result, ...texts, ...(note && { note }) });
    if (isException) {
      isExcepted = result === "holds";
      if (isExcepted && each === lastException) return explained;
    } else if (result === "fails") return explained;
  }
  return isRefused ? [...explained, preflightCondition(rule)] : explained;
}

function preflightCondition({ match }: Rule): ExplainedCondition {
  return {
    field: "match.methods",
    result: "fails",
    actual: "OPTIONS of a CORS preflight",
    expected: match.methods?.join(", ") ?? "OPTIONS",
    note: "Only rules that name OPTIONS in match.methods count CORS preflights.",
  };
}

function whyNot(conditions: readonly ExplainedCondition[]): string {
  const last = conditions.at(-1);
  if (!last) return "The request does not fulfil match.";
  const { field, actual, expected, note } = last;
  if (field.startsWith("match.except")) {
    return `The request fulfils match.except: ${field.slice("match.except.".length)} is ${actual}.`;
  }
  const texts = `it has ${actual}, and the rule demands ${expected}.`;
  return `The request does not fulfil ${field}: ${texts}${note ? ` ${note}` : ""}`;
}
