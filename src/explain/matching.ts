import type { NetworkSet } from "../config/address.ts";
import type { DeploymentMode } from "../config/bindings.ts";
import { type Conditions, type NamedCondition, splitRoute } from "../config/match.ts";
import type { Rule } from "../config/rule.ts";
import type { Config } from "../config/schema.ts";
import type { LiveOverrides } from "../overrides/live-overrides.ts";
import { type CanonicalRequest, readsOwnQuotas } from "../request/canonical-request.ts";
import { type ReadonlyHeaders, readClient } from "../request/headers.ts";
import type { Identified } from "../request/identify.ts";
import { conditionsOf, type RuleMatch, type TestedCondition } from "../request/matcher.ts";
import { canonicalPath } from "../request/path.ts";
import {
  type ExplainedCondition,
  namesCredential,
  quoted,
  shownCredential,
  shownList,
  shownText,
} from "./explanation.ts";

/** A rule of the configuration, and whether it matches a request before the client is identified. */
export interface MatchedRule {
  readonly rule: Rule;
  /** The conditions up to the first failing one. */
  readonly conditions: readonly ExplainedCondition[];
  /** The rule in the deployment's mode and with its override; undefined if it is off. */
  readonly active: Rule | undefined;
  /** The reason why the rule does not match; empty if it matches. */
  readonly why: string;
}

/** Returns all rules, with the first failing condition of each rule that does not match. */
export function explainMatches(
  config: Pick<Config, "rules" | "caseSensitivePaths" | "quotaPath">,
  { canonical, found, matches }: Identified,
  tested: ReadonlyMap<string, readonly TestedCondition[]>,
  mode: DeploymentMode,
  live: LiveOverrides,
): MatchedRule[] {
  const { rules, caseSensitivePaths } = config;
  const isRead = readsOwnQuotas(canonical, config);
  const namesOf = (list: readonly RuleMatch[]) => new Set(list.map(({ rule }) => rule.name));
  const matched = namesOf(found);
  const counted = namesOf(matches);
  const candidates = rules.filter((rule) => rule.for !== "programs");
  const shown = new ShownConditions(canonical, candidates, caseSensitivePaths);
  return rules.map((rule): MatchedRule => {
    const active = live.activeRuleOf(rule);
    const without = (conditions: readonly ExplainedCondition[], why: string) => {
      return { rule, active, conditions, why };
    };
    if (mode === "off") return without([OFF], "WEIR_MODE is off, so no rule applies.");
    if (isRead) return without([QUOTA_PATH], "The request reads the client's own quotas.");
    if (rule.for === "programs") return without([PROGRAMS], "It counts only calls of programs.");
    const conditions = (tested.get(rule.name) ?? []).map((each) => shown.conditionOf(rule, each));
    if (!matched.has(rule.name)) {
      if (conditions.length === 0) conditions.push(shown.conditionOf(rule, NO_ROUTE));
      return without(conditions, whyNot(conditions));
    }
    if (counted.has(rule.name)) return without(conditions, "");
    return without([...conditions, OVERRIDE], "An override has turned the rule off.");
  });
}

const NO_ROUTE: TestedCondition = { field: "paths", isException: false, holds: false };
const QUOTA_PATH: ExplainedCondition = {
  field: "quotaPath",
  result: "fails",
  actual: "GET or HEAD of this path, which no rule counts",
  expected: "another path or method",
};
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

function isException({ field }: ExplainedCondition): boolean {
  return field.startsWith("match.except.");
}

function whyNot(conditions: readonly ExplainedCondition[]): string {
  const last = conditions.at(-1);
  if (!last) return "The request does not fulfil match.";
  const { field, actual, expected, note } = last;
  if (isException(last)) {
    return `The request fulfils match.except: ${field.slice("match.except.".length)} is ${actual}.`;
  }
  const texts = `it has ${actual}, and the rule demands ${expected}.`;
  return `The request does not fulfil ${field}: ${texts}${note ? ` ${note}` : ""}`;
}

/** The maximum number of values of one parameter that are shown. */
const MAX_VALUES = 5;

/**
 * The conditions of a request as an explanation shows them. They contain no text of the configuration that may be a
 * secret, and no whole value of the request that may be a credential.
 */
class ShownConditions {
  readonly #request: CanonicalRequest;
  readonly #nearPaths: NearPaths;
  /** The headers and parameters whose values may be texts of the configuration, such as `headers.x-plan`. */
  readonly #secretFields: ReadonlySet<string>;

  constructor(request: CanonicalRequest, rules: readonly Rule[], caseSensitivePaths: boolean) {
    this.#request = request;
    this.#nearPaths = new NearPaths(request.path, caseSensitivePaths);
    const conditions = rules.flatMap(({ match: { except, ...match } }) => [
      ...conditionsOf({ headers: match.headers, query: match.query }),
      ...conditionsOf({ headers: except?.headers, query: except?.query }),
    ]);
    const secret = conditions.filter(
      ({ named, test }) => typeof named?.expected === "object" && test(request) !== false,
    );
    this.#secretFields = new Set(secret.map(({ field }) => field));
  }

  conditionOf({ match }: Rule, tested: TestedCondition): ExplainedCondition {
    const { field, named, isException, holds } = tested;
    const demanded: Conditions = (isException ? match.except : match) ?? {};
    const result = holds === undefined ? "unknown" : holds ? "holds" : "fails";
    const note = this.#noteOf(tested, demanded);
    return {
      field: `match.${isException ? "except." : ""}${field}`,
      result,
      actual: named ? this.#actualValue(field, named) : this.#actualOf(field),
      expected: named ? demandOf(named) : expectedOf(field, demanded),
      ...(note !== undefined && { note }),
    };
  }

  #actualOf(field: string): string {
    const { path, variants, isUnambiguous, host, sentMethod, isPreflight, headers, cf } =
      this.#request;
    switch (field) {
      case "paths": {
        const ways = variants.length > 1 ? `${variants.length} ways` : "different ways";
        return shownText(path) + (isUnambiguous ? "" : `, which origins may read in ${ways}`);
      }
      case "hosts":
        return host;
      case "methods":
        return isPreflight ? "OPTIONS of a CORS preflight" : sentMethod;
      case "ips":
        return shownAddress(headers);
      case "countries":
        return cf?.country || "no country";
      case "asns":
        return cf?.asn ? `AS${cf.asn}` : "no number";
      default:
        return actualBot(cf);
    }
  }

  #actualValue(field: string, { name }: NamedCondition): string {
    const { headers, search } = this.#request;
    const isHeader = field.startsWith("headers.");
    const values = isHeader ? [headers.get(name)] : new URLSearchParams(search).getAll(name);
    const sent = values.filter((value) => value !== null);
    if (sent.length === 0) return "absent";
    const show = this.#secretFields.has(field) || namesCredential(name) ? shownCredential : quoted;
    const list = shownList(sent.slice(0, MAX_VALUES).map(show), sent.length, MAX_VALUES);
    return sent.length === 1 ? list : `${sent.length} values: ${list}`;
  }

  /**
   * Returns the reason why a condition fails although the request nearly fulfils it, or the effect of an unknown
   * result.
   */
  #noteOf({ field, holds, isException }: TestedCondition, demanded: Conditions) {
    const { isPreflight, sentMethod, host } = this.#request;
    if (holds === undefined) return isException ? UNKNOWN_EXCEPTION : UNKNOWN;
    if (holds) return undefined;
    const { paths = [], hosts = [], methods = [] } = demanded;
    if (field === "paths") return this.#nearPaths.noteOf(paths);
    if (field === "methods" && isPreflight) return PREFLIGHT;
    if (field === "methods" && sentMethod === "GET" && methods.includes("HEAD")) return HEAD;
    if (field !== "hosts") return undefined;
    const apex = hosts.find((pattern) => pattern === `*.${host}`);
    if (apex !== undefined) return `${apex} does not include ${host} itself.`;
    const above = hosts.find((pattern) => host.endsWith(`.${pattern}`));
    return above && `${above} does not include hosts below it.`;
  }
}

const UNCLEAR = "The request does not show it, or origins may read different values.";
const UNKNOWN = `${UNCLEAR} So this condition counts as fulfilled.`;
const UNKNOWN_EXCEPTION = `${UNCLEAR} So the exception does not apply.`;
const PREFLIGHT = "Only rules that name OPTIONS in match.methods count CORS preflights.";
const HEAD = "A rule for GET also counts HEAD, but a rule for HEAD does not count GET.";

function actualBot(cf: CanonicalRequest["cf"]): string {
  const { verifiedBotCategory, botManagement } = cf ?? {};
  if (verifiedBotCategory) return verifiedBotCategory;
  const { verifiedBot } = (botManagement ?? {}) as { verifiedBot?: boolean };
  if (verifiedBot) return "a verified bot without a category";
  return verifiedBot === false || verifiedBotCategory === ""
    ? "no verified bot"
    : "no data about bots";
}

function expectedOf(field: string, conditions: Conditions): string {
  const { paths = [], hosts = [], methods, ips, countries = [], asns = [], bots } = conditions;
  const listOf = (items: readonly string[]) => shownList(items, items.length);
  switch (field) {
    case "paths":
      return listOf(paths);
    case "hosts":
      return listOf(hosts);
    case "methods":
      return listOf(methods ?? ["OPTIONS"]);
    case "ips":
      return ips ? shownNetworks(ips) : "";
    case "countries":
      return listOf(countries);
    case "asns":
      return listOf(asns.map((asn) => `AS${asn}`));
    default:
      return typeof bots === "string" ? bots : listOf(bots ?? []);
  }
}

/** Describes the demand of a condition without its texts, which may be secrets. */
function demandOf({ expected }: NamedCondition): string {
  if (expected === true) return "present";
  if (expected === false) return "absent";
  const texts = expected.filter((pattern) => typeof pattern === "string").length;
  const prefixes = expected.length - texts;
  const parts = [
    texts > 0 && (texts === 1 ? "a text" : `one of ${texts} texts`),
    prefixes > 0 && (prefixes === 1 ? "a prefix" : `one of ${prefixes} prefixes`),
  ].filter(Boolean);
  return `${parts.join(" or ")} (not shown)`;
}

export function shownNetworks(networks: NetworkSet): string {
  const texts = function* () {
    for (const [address, bits] of networks) yield `${address}/${bits}`;
  };
  return shownList(texts(), networks.size);
}

/** Returns the client's full address, because conditions use it. */
export function shownAddress(headers: ReadonlyHeaders): string {
  const client = readClient(headers);
  if (client.kind === "unknown") return "no address";
  const address = client.address.toString();
  return client.kind === "worker" ? `${address}, which all Workers of other zones share` : address;
}

/**
 * The maximum number of routes of all rules that are compared with one path, because some configurations have
 * thousands of routes. All further rules have no note.
 */
export const MAX_COMPARISONS = 1000;

/** Finds the routes that are nearest to the path of one request. */
export class NearPaths {
  readonly #sent: readonly string[];
  readonly #caseSensitive: boolean;
  #comparisons = 0;

  constructor(path: string, caseSensitive: boolean) {
    this.#sent = path.split("/").filter(Boolean);
    this.#caseSensitive = caseSensitive;
  }

  /**
   * Names the route that begins with the most segments of the path; undefined if no route begins with any of them.
   */
  noteOf(routes: readonly string[]): string | undefined {
    let nearest: string | undefined;
    let most = 0;
    for (const route of routes) {
      this.#comparisons += 1;
      if (this.#comparisons > MAX_COMPARISONS) break;
      const segments = splitRoute(route).filter(Boolean);
      const other = segments.findIndex((segment, at) => !fitsSegment(segment, this.#sent[at]));
      const equal = other === -1 ? segments.length : other;
      const isWhole = other === -1 && equal === this.#sent.length;
      if (isWhole && this.#caseSensitive) {
        return `Only upper and lower case differ from ${shownText(route)}, and caseSensitivePaths is true.`;
      }
      if (equal > most) [nearest, most] = [route, equal];
    }
    return nearest && `The nearest path is ${shownText(nearest)}.`;
  }
}

/** Whether a segment of a canonical path fits a segment of a route, ignoring case. */
function fitsSegment(segment: string, sent: string | undefined): boolean {
  if (sent === undefined) return false;
  if (segment === "*") return true;
  if (!segment.startsWith(":")) {
    const canonical = (text: string) => canonicalPath(`/${text}`, false).path;
    return canonical(segment) === canonical(sent);
  }
  const pattern = /\{(.+)\}/.exec(segment)?.[1];
  return !pattern || new RegExp(`^(?:${pattern})$`, "i").test(sent);
}
