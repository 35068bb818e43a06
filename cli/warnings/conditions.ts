import type { Conditions } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import { found, type LocalFinding } from "../finding.ts";
import {
  clientHeaderWarnings,
  isBoundToClient,
  isChosenByClient,
  isClientHeader,
  rulePath,
  rulePlaces,
  withoutChosen,
} from "./client-conditions.ts";
import { isCovered } from "./coverage.ts";

/** Header fields in whose values an asterisk has a meaning, such as the types of `accept`. */
const WITH_ASTERISK = /^(accept(-.+)?|access-control-.+|if-(none-)?match|cookie|content-range)$/;

/** A text that begins or ends with an asterisk, such as `free*`. */
const WILDCARD = /^\*|\*$/;
/** A text such as `/^free/i`, `^free` or `free.*`. Without these signs, `/a/b/` may be a path. */
const EXPRESSION = /^\^.|\.[*+]\$?$|^\/(?:\^.*|.*\$|.*[.)\]][*+].*|.*\\[dswDSW].*)\/[a-z]*$/s;

/**
 * Warns of texts such as `free*` and `/^free/` in conditions on header fields and query parameters.
 * Such a text is valid, but Weir compares it character by character. The text itself may be a credential.
 *
 * @param rule the name of the rule
 * @param place the path of the conditions
 */
function literalPatternWarnings(
  rule: string,
  { headers = [], query = [] }: Conditions,
  place: string,
): LocalFinding[] {
  const inHeaders = headers.filter(({ name }) => !WITH_ASTERISK.test(name));
  return [
    ...inHeaders.map((each) => ({ ...each, path: `${place}.headers` })),
    ...query.map((each) => ({ ...each, path: `${place}.query` })),
  ].flatMap(({ name, expected, path }) => {
    if (typeof expected === "boolean") return [];
    const texts = expected.map((each) => (typeof each === "string" ? each : each.prefix));
    const isWildcard = texts.some((text) => WILDCARD.test(text));
    if (!isWildcard && !texts.some((text) => EXPRESSION.test(text))) return [];
    const notation = isWildcard ? "the asterisk" : "the regular expression";
    return [
      found(
        "literal-pattern",
        `${path}[${JSON.stringify(name)}]`,
        `The rule "${rule}" compares the value with each character of the text, so ${notation} has no special meaning`,
        'Write the whole text, { prefix: "…" }, a list of them, or true for a value of any text',
      ),
    ];
  });
}

/** Warnings about conditions in `match` and `except`. */
export function conditionWarnings(config: Config): LocalFinding[] {
  const { rules, caseSensitivePaths } = config;
  const places = rulePlaces(config);
  const enforced = rules.filter(
    (rule) => rule.for === "all" && rule.mode === "enforce" && rule.cost !== 0,
  );
  return rules.flatMap((rule, index) => {
    const { match, mode } = rule;
    const place = `${rulePath(places, index)}.match`;
    const areCovered = (conditions: Conditions) =>
      isCovered({ ...rule, match: conditions }, enforced, caseSensitivePaths);
    return [
      ...(mode === "shadow" ? [] : matchWarnings(rule, place, areCovered)),
      ...(mode === "shadow" ? [] : exceptWarnings(rule, place, areCovered)),
      ...ownWarnings(rule, match, place),
      ...(match.except ? ownWarnings(rule, match.except, `${place}.except`) : []),
    ];
  });
}

/** Warnings about the conditions of `match` or of `except` alone. */
function ownWarnings(rule: Rule, conditions: Conditions, place: string): LocalFinding[] {
  return [
    ...valueWarnings(rule, conditions, place),
    ...clientHeaderWarnings(rule.name, conditions, place),
    ...literalPatternWarnings(rule.name, conditions, place),
  ];
}

/** Whether the cure for another warning removes all conditions on what the client sends. */
function isOnlyClientHeaders({ headers = [], query }: Conditions): boolean {
  return query === undefined && headers.every(({ name }) => isClientHeader(name));
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

/** Warnings about values that no request has. */
function valueWarnings(
  { name }: Rule,
  { countries = [], bots = [] }: Conditions,
  place: string,
): LocalFinding[] {
  const unknownCountries = countries.filter((code) => code !== "T1" && !isCountryCode(code));
  const unknownBots = [bots].flat().filter((bot) => bot !== "verified" && !BOTS.includes(bot));
  return [
    ...unknownCountries.map(
      (code): LocalFinding =>
        found(
          "unknown-country",
          `${place}.countries`,
          `In the rule "${name}", ${code} is no code of ISO 3166-1, so no request has it`,
          'Write a code such as "DE"',
        ),
    ),
    ...unknownBots.map(
      (bot): LocalFinding =>
        found(
          "unknown-bot-category",
          `${place}.bots`,
          `In the rule "${name}", ${JSON.stringify(bot)} is no category of bots that Cloudflare documents`,
          `Write one of: ${BOTS.join(", ")}`,
        ),
    ),
  ];
}

/** https://developers.cloudflare.com/bots/concepts/bot/verified-bots/categories/ */
const BOTS: readonly string[] = [
  "Academic Research",
  "Accessibility",
  "Advertising & Marketing",
  "Aggregator",
  "AI Assistant",
  "AI Crawler",
  "AI Search",
  "Archiver",
  "Feed Fetcher",
  "Monitoring & Analytics",
  "Page Preview",
  "Search Engine Crawler",
  "Search Engine Optimization",
  "Security",
  "Social Media Marketing",
  "Webhooks",
  "Other",
];
