import type { Conditions, NamedCondition, ValuePattern } from "../../src/config/match.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
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

/**
 * Warns of texts such as `free*` and `/^free/` in conditions on header fields and query parameters.
 * Such a text is valid, but Weir compares it character by character.
 *
 * @param rule the name of the rule
 * @param place the path of the conditions
 */
function literalPatternWarnings(
  rule: string,
  { headers = [], query = [] }: Conditions,
  place: string,
): LocalFinding[] {
  return [
    ...headers
      .filter(({ name }) => !WITH_ASTERISK.test(name))
      .flatMap((header) => warningsOf(header, rule, `${place}.headers`)),
    ...query.flatMap((parameter) => warningsOf(parameter, rule, `${place}.query`)),
  ];
}

function warningsOf(
  { name, expected }: NamedCondition,
  rule: string,
  place: string,
): LocalFinding[] {
  if (typeof expected === "boolean") return [];
  const [found] = expected.flatMap((pattern) => mistakeIn(pattern) ?? []);
  if (!found) return [];
  return [
    {
      code: "literal-pattern",
      severity: "warning",
      path: `${place}[${JSON.stringify(name)}]`,
      message: `The rule "${rule}" compares the value with each character of the text, so ${found.what} has no special meaning`,
      cure: found.cure,
    },
  ];
}

/** A notation of other programs, and the cure. */
interface Mistake {
  readonly what: "the asterisk" | "the regular expression";
  readonly cure: string;
}

const NO_PATTERN = 'Write the whole text, { prefix: "…" }, or a list of them';

function mistakeIn(pattern: ValuePattern): Mistake | undefined {
  const text = typeof pattern === "string" ? pattern : pattern.prefix;
  const expression = expressionIn(text);
  if (expression !== undefined) {
    return { what: "the regular expression", cure: expressionCure(expression) };
  }
  const what = "the asterisk";
  if (/^\*+$/.test(text)) return { what, cure: "Write true, for a value of any text" };
  const [, start] = /^([^*]+)\*+$/.exec(text) ?? [];
  if (start !== undefined) return { what, cure: `Write ${prefixOf(start)}` };
  return /^\*|\*$/.test(text) ? { what, cure: NO_PATTERN } : undefined;
}

/** Returns the expression in a text such as `/^free/i`, `^free` or `free.*`, without the slashes. */
function expressionIn(text: string): string | undefined {
  const [, inSlashes = ""] = /^\/(.+)\/[a-z]*$/s.exec(text) ?? [];
  // Without one of these signs, the text may be a path, such as /a/b/.
  if (/^\^|\$$|[.)\]][*+]|\\[dswDSW]/.test(inSlashes)) return inSlashes;
  return /^\^.|\.[*+]\$?$/.test(text) ? text : undefined;
}

/** Suggests a text, a prefix, or a list of them, if the expression means one of these. */
function expressionCure(expression: string): string {
  const middle = expression.replace(/^\^|\$$|(\.[*+])+\$?$/g, "").replace(/^\((\?:)?(.*)\)$/, "$2");
  const texts = middle.split("|");
  const isFromStart = /^\^|\.[*+]$/.test(expression);
  if (!isFromStart || !texts.every((text) => /^[\w /:@-]+$/.test(text))) return NO_PATTERN;
  const isWhole = /(^|[^*+])\$$/.test(expression);
  const written = texts.map(isWhole ? textOf : prefixOf);
  return `Write ${written.length === 1 ? written[0] : `[${written.join(", ")}]`}`;
}

function prefixOf(text: string): string {
  return `{ prefix: ${textOf(text)} }`;
}

/** Writes a short text of letters only. Other texts may be credentials, and logs have many readers. */
function textOf(text: string): string {
  return /^[A-Za-z][A-Za-z _-]{0,11}$/.test(text) ? JSON.stringify(text) : '"…"';
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
    {
      code: "chosen-match",
      severity: "warning",
      path: `${place}.${match.headers ? "headers" : "query"}`,
      message: `Clients choose whether the rule "${name}" counts them, because it depends on what they send, and no other rule limits the other requests`,
      cure: "Add a rule with the same match, but without this condition, and a limit for all clients",
    },
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
    {
      code: "chosen-except",
      severity: "warning",
      path: `${place}.except.${except.headers ? "headers" : "query"}`,
      message: `Every client can send what except names, and the rule "${name}" then does not count it`,
      cure: 'Write exempt: { headers: { "x-internal": { secret: "NAME" } } } instead, or add a rule that counts these requests too',
    },
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
      (code): LocalFinding => ({
        code: "unknown-country",
        severity: "warning",
        path: `${place}.countries`,
        message: `In the rule "${name}", ${code} is no code of ISO 3166-1, so no request has it`,
        cure: 'Write a code such as "DE"',
      }),
    ),
    ...unknownBots.map(
      (bot): LocalFinding => ({
        code: "unknown-bot-category",
        severity: "warning",
        path: `${place}.bots`,
        message: `In the rule "${name}", ${JSON.stringify(bot)} is no category of bots that Cloudflare documents`,
        cure: `Write one of: ${BOTS.join(", ")}`,
      }),
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
