import type { Conditions } from "../../src/config/conditions.ts";
import { isCountryCode } from "../../src/config/explain/client-hint.ts";
import type { Rule } from "../../src/config/rule.ts";
import type { Config } from "../../src/config/schema.ts";
import type { LocalFinding } from "../finding.ts";
import { isBoundToClient, isChosenByClient, withoutChosen } from "./client-conditions.ts";
import { clientHeaderWarnings, isClientHeader } from "./client-headers.ts";
import { Coverage } from "./coverage.ts";
import { literalPatternWarnings } from "./literal-patterns.ts";
import { rulePath, rulePlaces } from "./rule-places.ts";

/** Warnings about conditions in `match` and `except`. */
export function conditionWarnings(config: Config): LocalFinding[] {
  const { rules, caseSensitivePaths } = config;
  const coverage = new Coverage(caseSensitivePaths);
  const places = rulePlaces(config);
  const enforced = rules.filter(
    (rule) => rule.for === "all" && rule.mode === "enforce" && rule.cost !== 0,
  );
  return rules.flatMap((rule, index) => {
    const { match, mode } = rule;
    const place = `${rulePath(places, index)}.match`;
    const isCovered = (conditions: Conditions) =>
      coverage.isCovered({ ...rule, match: conditions }, enforced);
    return [
      ...(mode === "shadow" ? [] : matchWarnings(rule, place, isCovered)),
      ...(mode === "shadow" ? [] : exceptWarnings(rule, place, isCovered)),
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
