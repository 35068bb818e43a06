import type { KeyPart } from "../../src/config/key.ts";
import type { Conditions, Match } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import { found, type LocalFinding } from "../finding.ts";

/** What to write in a rule instead of a header field about the client. */
interface ClientHeader {
  /** The cure for a condition. */
  readonly condition: string;
  readonly key: "country" | "ip";
}

const ADDRESS: ClientHeader = {
  condition: 'Write ips with addresses and networks, such as ips: ["198.51.100.0/24"]',
  key: "ip",
};

/** Header fields with the client's address or country. A Map, because a header may be named `constructor`. */
const CLIENT_HEADERS: ReadonlyMap<string, ClientHeader> = new Map<string, ClientHeader>([
  ["cf-ipcountry", { condition: 'Write countries, such as countries: ["DE"]', key: "country" }],
  ["cf-connecting-ip", ADDRESS],
  ["cf-connecting-ipv6", ADDRESS],
  ["cf-pseudo-ipv4", ADDRESS],
  ["client-ip", ADDRESS],
  ["fastly-client-ip", ADDRESS],
  ["fly-client-ip", ADDRESS],
  ["true-client-ip", ADDRESS],
  ["x-client-ip", ADDRESS],
  ["x-cluster-client-ip", ADDRESS],
  ["x-azure-clientip", ADDRESS],
  ["x-envoy-external-address", ADDRESS],
  ["x-forwarded", ADDRESS],
  ["x-forwarded-for", ADDRESS],
  ["x-original-forwarded-for", ADDRESS],
  ["x-real-ip", ADDRESS],
  ["forwarded", ADDRESS],
]);

/** Warns of conditions on header fields with the client's address or country. */
function clientHeaderWarnings(
  rule: string,
  { headers = [] }: Conditions,
  place: string,
): LocalFinding[] {
  return headers.flatMap(({ name }) => {
    const header = CLIENT_HEADERS.get(name);
    if (!header) return [];
    return [
      found(
        "client-header",
        `${place}.headers[${JSON.stringify(name)}]`,
        `The rule "${rule}" compares the header ${name} as a text, and clients can send some of these headers with any value`,
        header.condition,
      ),
    ];
  });
}

/**
 * Finds a header field with the client's address or country in a key. Returns its name, and the key to write instead.
 */
export function clientHeaderIn(
  parts: readonly KeyPart[],
): { readonly name: string; readonly key: string } | undefined {
  for (const part of parts) {
    const header = part.kind === "header" ? CLIENT_HEADERS.get(part.name) : undefined;
    if (header && "name" in part) return { name: part.name, key: header.key };
  }
  return undefined;
}

/** Whether one of these conditions reads a value that clients choose: a header field or a query parameter. */
function isChosenByClient(conditions: Conditions): boolean {
  return conditions.headers !== undefined || conditions.query !== undefined;
}

/** Whether one of these conditions reads a fact that clients cannot choose, such as their country. */
function isBoundToClient({ ips, countries, asns, bots }: Conditions): boolean {
  return [ips, countries, asns, bots].some((condition) => condition !== undefined);
}

/** Returns conditions without those that clients choose. */
function withoutChosen({ headers: _, query: __, ...match }: Match): Match {
  return match;
}

/**
 * Whether one of the other rules certainly applies to each request of `rule`: it has equal or fewer conditions, or
 * names more hosts, methods and paths. Other proofs are not tried, so the result may be wrongly false.
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

/** Whether paths, hosts or methods show that no request can meet both conditions. */
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

/** Whether a path or host of one list contains one of the other list, ignoring the case of letters. */
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

/** A rule that names GET also matches HEAD. */
function asGet(method: string): string {
  return method === "HEAD" ? "GET" : method;
}

/** The conditions other than hosts, methods and paths. */
const FIELDS = ["headers", "query", "ips", "countries", "asns", "bots"] as const;

/** Conditions as texts, by the names of their fields. */
type ConditionTexts = ReadonlyMap<string, string>;

/**
 * Returns the conditions other than hosts, methods and paths. Equal conditions have equal texts.
 */
function conditionTextsOf(conditions: Conditions): ConditionTexts {
  return new Map(
    FIELDS.filter((field) => conditions[field] !== undefined).map((field) => [
      field,
      textOf(conditions[field]),
    ]),
  );
}

/**
 * Whether every request that meets the narrow conditions certainly also meets the wide ones. Different conditions on
 * one field count as not included, because values are not compared.
 */
function areIncluded(wide: ConditionTexts, narrow: ConditionTexts): boolean {
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

/** Warnings about the conditions in `match` and `except` of one rule. */
export function conditionWarnings(
  rule: Rule,
  place: string,
  { enforced, caseSensitive }: { enforced: readonly Rule[]; caseSensitive: boolean },
): LocalFinding[] {
  const { match, mode } = rule;
  const at = `${place}.match`;
  const areCovered = (conditions: Conditions) =>
    isCovered({ ...rule, match: conditions }, enforced, caseSensitive);
  return [
    ...(mode === "shadow" ? [] : matchWarnings(rule, at, areCovered)),
    ...(mode === "shadow" ? [] : exceptWarnings(rule, at, areCovered)),
    ...ownWarnings(rule.name, match, at),
    ...(match.except ? ownWarnings(rule.name, match.except, `${at}.except`) : []),
  ];
}

/** Warnings about the conditions of `match` or of `except` alone. */
function ownWarnings(rule: string, conditions: Conditions, place: string): LocalFinding[] {
  const { countries = [] } = conditions;
  return [
    ...countries
      .filter((code) => code !== "T1" && !isCountryCode(code))
      .map((code) =>
        found(
          "unknown-country",
          `${place}.countries`,
          `In the rule "${rule}", ${code} is no code of ISO 3166-1, so no request has it`,
          'Write a code such as "DE"',
        ),
      ),
    ...clientHeaderWarnings(rule, conditions, place),
  ];
}

/**
 * Whether all conditions that clients choose are header fields about the client. Another warning already has the cure
 * for these.
 */
function isOnlyClientHeaders({ headers = [], query }: Conditions): boolean {
  return query === undefined && headers.every(({ name }) => CLIENT_HEADERS.has(name));
}

/** Whether enforced rules count every request that meets the given conditions. */
type IsCovered = (conditions: Conditions) => boolean;

function matchWarnings({ name, match }: Rule, place: string, isCovered: IsCovered): LocalFinding[] {
  if (!isChosenByClient(match) || isOnlyClientHeaders(match)) return [];
  if (isCovered(withoutChosen(match))) return [];
  return [
    found(
      "chosen-match",
      `${place}.${match.headers ? "headers" : "query"}`,
      `Clients choose whether the rule "${name}" counts them, because it depends on what they send, and no other rule limits the other requests`,
      "Add a rule with the same match, but without this condition, and a limit for all clients",
    ),
  ];
}

function exceptWarnings(
  { name, match: { except, ...match } }: Rule,
  place: string,
  isCovered: IsCovered,
): LocalFinding[] {
  // If the exception also has a condition that clients cannot choose, most clients cannot use it.
  if (!except || !isChosenByClient(except) || isBoundToClient(except)) return [];
  if (isOnlyClientHeaders(except)) return [];
  if (isCovered(match) || isCovered(except)) return [];
  return [
    found(
      "chosen-except",
      `${place}.except.${except.headers ? "headers" : "query"}`,
      `Every client can send what except names, and the rule "${name}" then does not count it`,
      'Write exempt: { headers: { "x-internal": { secret: "NAME" } } } instead, or add a rule that counts these requests too',
    ),
  ];
}

/** Whether a code of two letters is in ISO 3166-1. Withdrawn codes such as `DD` do not count. */
function isCountryCode(code: string): boolean {
  const name = new Intl.DisplayNames("en", { type: "region", fallback: "none" }).of(code);
  if (name === undefined || /^(Unknown Region|Pseudo-)/.test(name)) return false;
  return new Intl.Locale(`und-${code}`).region === code;
}
