import { inputOf } from "../../src/config/define.ts";
import { pathOf } from "../../src/config/faults.ts";
import { isRecord } from "../../src/config/fields.ts";
import type { KeyPart } from "../../src/config/key.ts";
import type { Conditions, Match } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import { placedRules } from "../../src/config/rules.ts";
import type { Config } from "../../src/config/schema.ts";
import { found, type LocalFinding } from "../finding.ts";

/** Where a rule is written. */
interface RulePlace {
  /** The path of the rule, such as `rules[0]` or `rules["rules/login.ts"][0]`. */
  readonly path: string;
  /** The name of the rule's file in `rules`; undefined if all rules are in one list. */
  readonly file?: string;
}

/** Returns the place of each rule of a valid configuration, in the order of the rules. */
export function rulePlaces(config: Config): readonly RulePlace[] {
  const input = inputOf(config);
  return placedRules(isRecord(input) ? input : {}).map(({ path }): RulePlace => {
    const [, file] = path;
    return { path: pathOf(path), ...(typeof file === "string" && { file }) };
  });
}

/** Returns the path of one rule. */
export function rulePath(places: readonly RulePlace[], index: number): string {
  return places[index]?.path ?? `rules[${index}]`;
}

/** A rule, and the name of its file if the rules are in several files. */
export interface FiledRule extends Rule {
  readonly file?: string;
}

/** Returns the rules of a valid configuration, with their files. */
export function filedRules(config: Config): readonly FiledRule[] {
  const places = rulePlaces(config);
  return config.rules.map((rule, index) => {
    const file = places[index]?.file;
    return file === undefined ? rule : { file, ...rule };
  });
}

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
export function textOf(condition: unknown): string {
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

/** Why a rule should not read a header field, and what to write instead. */
interface ClientHeader {
  readonly reason: string;
  /** The cure for a condition. */
  readonly cure: string;
  /** The key to write instead, if only Cloudflare sets the field. */
  readonly key?: string;
}

const IPS = 'Write ips with addresses and networks, such as ips: ["198.51.100.0/24"]';
const ADDRESS = { reason: "and so as a text, not as an address or a network", cure: IPS };
const SENT_ADDRESS = { reason: "which every client can send with any value", cure: IPS };

/** Header fields with data about the client. A Map, because a header may be named `constructor`. */
const CLIENT_HEADERS: ReadonlyMap<string, ClientHeader> = new Map<string, ClientHeader>([
  [
    "cf-ipcountry",
    {
      reason: "which is missing if IP Geolocation is off in the zone",
      cure: 'Write countries, such as countries: ["DE"]',
      key: "country",
    },
  ],
  ["cf-connecting-ip", ADDRESS],
  ["cf-connecting-ipv6", ADDRESS],
  ["true-client-ip", SENT_ADDRESS],
  ["x-client-ip", SENT_ADDRESS],
  ["x-forwarded-for", SENT_ADDRESS],
  ["x-real-ip", SENT_ADDRESS],
  ["forwarded", SENT_ADDRESS],
  [
    "cf-ray",
    {
      reason: "which is different for each request",
      cure: "Remove it: no condition reads the data center, but a function for a key custom:NAME can return request.cf.colo",
      key: "ip",
    },
  ],
  [
    "cf-visitor",
    {
      reason: 'which is JSON, such as {"scheme":"https"}',
      cure: "Remove it. If no client shall use plain HTTP, turn on Always Use HTTPS in the zone",
    },
  ],
]);

/** Whether a header field has data about the client that Weir reads from Cloudflare itself. */
export function isClientHeader(name: string): boolean {
  return CLIENT_HEADERS.has(name);
}

/**
 * Warns of conditions on header fields with the client's address or country, and on other fields of
 * Cloudflare.
 *
 * @param rule the name of the rule
 * @param place the path of the conditions
 */
export function clientHeaderWarnings(
  rule: string,
  { headers = [] }: Conditions,
  place: string,
): LocalFinding[] {
  return headers.flatMap(({ name }): LocalFinding[] => {
    const header = CLIENT_HEADERS.get(name);
    if (!header) return [];
    return [
      found(
        "client-header",
        `${place}.headers[${JSON.stringify(name)}]`,
        `The rule "${rule}" compares the header ${name}, ${header.reason}`,
        header.cure,
      ),
    ];
  });
}

/**
 * Returns the warning about a key that reads a header field of Cloudflare; undefined if the key also
 * reads a value that clients choose.
 *
 * @param parts the parts of the key that are values of header fields, cookies or parameters
 */
export function cloudflareKeyWarning(
  rule: string,
  parts: readonly KeyPart[],
  place: string,
): LocalFinding | undefined {
  const names = parts.map((part) => (part.kind === "header" ? part.name : ""));
  const [first = ""] = names;
  const header = CLIENT_HEADERS.get(first);
  if (header?.key === undefined || names.some((name) => name !== first)) return undefined;
  return found(
    "client-header",
    `${place}.key`,
    `The key of the rule "${rule}" is the header ${first}, ${header.reason}`,
    `Write key: "${header.key}"`,
  );
}
