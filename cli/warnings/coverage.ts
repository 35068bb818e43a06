import type { Conditions, Match } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { found, type LocalFinding } from "../finding.ts";
import {
  areIncluded,
  conditionTextsOf,
  rulePath,
  rulePlaces,
  textOf,
} from "./client-conditions.ts";
import { formatLimit, neverBinds } from "./limits.ts";

/**
 * Whether one of these rules applies to each request that `rule` applies to: it has the same conditions, or it leaves
 * some of them out, or it names more hosts, methods and paths. Other proofs are not tried, so the result may be
 * false for a rule that is covered.
 *
 * @param caseSensitive whether upper and lower case differ in paths
 */
export function isCovered(rule: Rule, others: readonly Rule[], caseSensitive: boolean): boolean {
  const { except, ...match } = rule.match;
  const excepted = JSON.stringify(except);
  return others.some(
    (other) =>
      other === rule ||
      (includes(other.match, match, caseSensitive) &&
        (!other.match.except ||
          JSON.stringify(other.match.except) === excepted ||
          isApart(other.match.except, match)) &&
        // A preflight request matches only a rule that names OPTIONS.
        (!match.methods?.includes("OPTIONS") || other.match.methods?.includes("OPTIONS") === true)),
  );
}

/** Whether each request that meets the narrow conditions certainly meets the wide ones. */
function includes(wide: Conditions, narrow: Conditions, caseSensitive: boolean): boolean {
  return (
    (!wide.hosts || everyIn(narrow.hosts, wide.hosts, hostCovers)) &&
    (!wide.methods ||
      everyIn(narrow.methods, wide.methods, (all, part) => all === part || all === asGet(part))) &&
    (!wide.paths ||
      wide.paths.includes("/*") ||
      everyIn(narrow.paths, wide.paths, (all, part) =>
        caseSensitive ? isWithin(part, all) : isWithin(part.toLowerCase(), all.toLowerCase()),
      )) &&
    areIncluded(conditionTextsOf(wide), conditionTextsOf(narrow))
  );
}

/** Whether no request can meet both, by their paths, hosts or methods alone. */
function isApart(except: Conditions, { paths, hosts, methods }: Conditions): boolean {
  // Patterns could overlap in ways that this comparison does not see.
  const isPlain = (path: string) => !/[:*]/.test(path.replace(/\/\*$/, ""));
  const arePathsApart =
    paths && [...paths, ...(except.paths ?? [":"])].every(isPlain) && !overlap(except.paths, paths);
  return (
    arePathsApart === true ||
    (hosts !== undefined && except.hosts !== undefined && !overlap(except.hosts, hosts)) ||
    (methods !== undefined &&
      except.methods?.every((each) => methods.every((own) => asGet(own) !== asGet(each)))) === true
  );
}

/** Whether one of these paths or hosts contains another one, in any case of letters. */
function overlap(some: readonly string[] = [], others: readonly string[]): boolean {
  return some.some((each) =>
    others.some((other) => {
      const [a, b] = [each.toLowerCase(), other.toLowerCase()];
      return isWithin(a, b) || isWithin(b, a) || hostCovers(a, b) || hostCovers(b, a);
    }),
  );
}

function everyIn<Item>(
  narrow: readonly Item[] | undefined,
  wide: readonly Item[],
  covers: (all: Item, part: Item) => boolean,
): boolean {
  return narrow?.every((part) => wide.some((all) => covers(all, part))) === true;
}

function isWithin(path: string, all: string): boolean {
  return path === all || (all.endsWith("/*") && `${path}/`.startsWith(all.slice(0, -1)));
}

function hostCovers(all: string, host: string): boolean {
  return all === host || (all.startsWith("*.") && host.endsWith(all.slice(1)));
}

/** HEAD counts as GET, for a rule that names GET. */
function asGet(method: string): string {
  return method === "HEAD" ? "GET" : method;
}

/**
 * The maximum number of rules for the same requests that the check compares. It compares each of these
 * rules with every other one.
 */
const MAX_COMPARED = 100;

/** A rule, its position among all rules, its path, and its limits as a text, for comparisons. */
interface Placed {
  readonly rule: Rule;
  readonly index: number;
  readonly place: string;
  readonly limits: string;
}

/**
 * Warnings about rules that count the same requests of the same clients as an earlier rule.
 *
 * @param routed whether a Hono app may apply each rule to some of its routes only. Then rules without
 *   conditions may count different requests, and are not compared
 */
export function duplicateWarnings(config: Config, routed: boolean): LocalFinding[] {
  const { rules, caseSensitivePaths } = config;
  const places = rulePlaces(config);
  const groups = new Map<string, Placed[]>();
  for (const [index, rule] of rules.entries()) {
    // A program chooses each rule that it uses, and may use two equal rules for different clients.
    if (rule.mode === "shadow" || rule.for === "programs") continue;
    if (routed && Object.keys(rule.match).length === 0) continue;
    const counted = countedBy(rule, caseSensitivePaths);
    const group = groups.get(counted) ?? [];
    group.push({ rule, index, place: rulePath(places, index), limits: limitsOf(rule) });
    groups.set(counted, group);
  }
  const compared = [...groups.values()].filter((group) => group.length <= MAX_COMPARED);
  return compared.flatMap((group) => group.flatMap((placed) => idleIn(placed, group)));
}

/** @param group all rules that count the same requests */
function idleIn(placed: Placed, group: readonly Placed[]): LocalFinding[] {
  const { rule, index, place, limits } = placed;
  const same = group.find((each) => each.index < index && each.limits === limits);
  if (same) {
    return [
      found(
        "same-rule",
        place,
        `The rule "${rule.name}" counts the same requests with the same limits as the rule "${same.rule.name}"`,
        "Remove one of the two rules",
      ),
    ];
  }
  // A rule with a ban or with tiers has an effect even if its own limits deny no request.
  if (rule.banMs !== undefined || rule.tiers) return [];
  const stricter = group.find(
    (other) =>
      other.limits !== limits &&
      // A rule that only marks requests denies none of them.
      other.rule.mode === "enforce" &&
      !other.rule.tiers &&
      rule.windows.every((idle) =>
        other.rule.windows.some(
          // A limit of 0 denies everything on purpose.
          (each) => each.limit > 0 && neverBinds(idle, each, !haveOneStart(rule, other.rule)),
        ),
      ),
  );
  if (!stricter) return [];
  return [
    found(
      "limit-never-binds",
      place,
      `The rule "${rule.name}" (${rule.windows.map(formatLimit).join(", ")}) ${rule.mode === "mark" ? "marks" : "denies"} no request, because the rule "${stricter.rule.name}" (${stricter.rule.windows.map(formatLimit).join(", ")}) counts the same requests and denies earlier`,
      "Make its limit lower, or remove the rule",
    ),
  ];
}

/** Whether the windows of two rules begin at multiples of their lengths after the Unix epoch. */
function haveOneStart(...rules: readonly Rule[]): boolean {
  return rules.every(
    ({ spread, windows }) => !spread && windows.every(({ offsetMs }) => offsetMs === 0),
  );
}

/** Returns a text that is equal for rules that count the same requests of the same clients. */
function countedBy(
  { match, key, cost, count, exempt, shards }: Rule,
  caseSensitive: boolean,
): string {
  return JSON.stringify([sorted(match, caseSensitive), key, cost, count, exempt, shards]);
}

/** Returns conditions with sorted lists, because the order of a list has no meaning. */
function sorted(match: Match, caseSensitive: boolean): unknown {
  const { hosts, methods, paths, except } = match;
  // Slashes at the end have no meaning.
  const routes = paths?.map((path) => {
    const route = path.replace(/(?<=.)\/+$/, "");
    return caseSensitive ? route : route.toLowerCase();
  });
  return [
    ...[hosts, methods, routes?.includes("/*") ? undefined : routes].map(
      (list) => list && [...new Set(list)].sort(),
    ),
    [...conditionTextsOf(match)],
    except ? sorted(except, caseSensitive) : undefined,
  ];
}

function limitsOf({ windows, tiers, spread, banMs, escalation }: Rule): string {
  const limits = windows.map(({ policy: _, ...window }) => window);
  return JSON.stringify([limits, tiers && [...tiers.windows], spread, banMs, escalation]);
}

/** Warns of a rule whose `except` or `exempt` excludes everything that the rule matches. */
export function neverMatchesWarnings(
  { name, match, exempt }: Rule,
  place: string,
  caseSensitive: boolean,
): LocalFinding[] {
  const { except, ...others } = match;
  if (except && includes(except, others, caseSensitive)) {
    return [neverMatches(name, "except", `${place}.match.except`)];
  }
  if (!exempt || !match.ips || textOf(exempt.networks) !== textOf(match.ips)) return [];
  return [neverMatches(name, "exempt", `${place}.exempt.ips`)];
}

function neverMatches(name: string, field: "except" | "exempt", path: string): LocalFinding {
  return found(
    "never-matches",
    path,
    `The rule "${name}" counts no request: its ${field} excludes everything that it matches`,
    `Make ${field} narrower, or remove the rule`,
  );
}
