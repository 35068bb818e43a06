import { type Calendar, calendarOf } from "../src/config/calendar.ts";
import { formatDuration } from "../src/config/duration.ts";
import type { KeyExpression } from "../src/config/key.ts";
import type { LimitSource } from "../src/config/limit-source.ts";
import type { Conditions, Match, NamedCondition } from "../src/config/match.ts";
import type { Rule, Tiers, Window } from "../src/config/rule.ts";
import { printableSecretName } from "../src/config/tiers.ts";
import { formatPer } from "../src/config/window.ts";
import { evenQuota } from "../src/engine/sub-windows.ts";
import { table } from "./print/text.ts";
import type { FiledRule } from "./warnings/rules.ts";

const HEADINGS = ["RULE", "COUNTED BY", "QUOTA", "REQUESTS", "ALSO", "FILE"];
/** How many items of a long list are printed, so that a rule with fifty paths stays readable. */
const LISTED = 3;

/**
 * Returns a table with a row for each rule.
 *
 * @param width the maximum width, in columns
 */
export function ruleTable(rules: readonly FiledRule[], width: number): string {
  return table(HEADINGS, rules.map(cellsOf), width);
}

function cellsOf(rule: FiledRule): string[] {
  const { name, key, windows, match, file = "" } = rule;
  const requests = rule.for === "programs" ? "none, only calls of programs" : formatMatch(match);
  const quotas = windows.map(formatQuota).join(", ");
  return [name, formatKey(key), quotas, requests, otherFields(rule), file];
}

/** Returns the fields that few rules have, with the values of those that are one word. */
function otherFields(rule: Rule): string {
  const { exempt, tiers, spread, shards, cost, count, ban, waitMs, retryJitterMs, response } = rule;
  return [
    rule.mode !== "enforce" && `mode: ${rule.mode}`,
    rule.onError !== "open" && `onError: ${rule.onError}`,
    exempt && "exempt",
    tiers && "tiers",
    spread && "start",
    shards > 1 && "shards",
    cost !== 1 && "cost",
    count && "count",
    ban && "ban",
    waitMs > 0 && "wait",
    rule.async && "async",
    retryJitterMs > 0 && "retryJitter",
    response && "response",
    rule.tellOrigin && "tellOrigin",
  ]
    .filter(Boolean)
    .join(", ");
}

/**
 * Formats a key as it is written in a configuration. It joins alternatives by " | " and combined
 * elements by commas.
 */
export function formatKey(key: KeyExpression): string {
  return key
    .map((alternatives) =>
      alternatives
        .map((part) => ("name" in part ? `${part.kind}:${part.name}` : part.kind))
        .join(" | "),
    )
    .join(", ");
}

/** Formats a quota, such as `10 per 1m`, `4 at once` or `custom:quota (at most 100, default 10) per 1m`. */
export function formatQuota(window: Window): string {
  const { capacity, maxReserved, offsetMs, calendar, concurrent, from, sliding } = window;
  const limit = formatNumber(window.limit, from?.limit);
  if (concurrent) return `${limit} at once`;
  const quota = `${limit} ${formatPer(window)}`;
  const details = [
    sliding && !from?.limit && `${evenQuota(window.limit, sliding)} if sent evenly`,
    capacity !== window.limit && `up to ${formatNumber(capacity, from?.capacity)}`,
    maxReserved > 0 && `${maxReserved} ahead`,
    calendar && formatCalendar(calendar),
    offsetMs > 0 && `offset ${formatDuration(offsetMs / 1000)}`,
  ].filter(Boolean);
  return details.length === 0 ? quota : `${quota} (${details.join(", ")})`;
}

function formatNumber(number: number, source: LimitSource | undefined): string {
  if (!source) return String(number);
  return `${formatKey([[source.from]])} (at most ${source.max}, default ${number})`;
}

/** Formats the time zone of a calendar, and its start if that is not the default. */
function formatCalendar({ unit, timeZone, id }: Calendar): string {
  const [, , ...start] = id.split(" ");
  const isDefault = id === calendarOf(unit, timeZone, {}).id;
  return isDefault ? timeZone : `${timeZone} from ${start.join(" ")}`;
}

/** Formats the requests that a rule selects, without the values that conditions expect. */
export function formatMatch({ except, ...conditions }: Match): string {
  const selected = formatConditions(conditions) || "every request";
  return except ? `${selected}, except ${formatConditions(except)}` : selected;
}

function formatConditions(conditions: Conditions): string {
  const { hosts, methods, paths, headers, query, ips, countries, asns, bots } = conditions;
  return [
    hosts,
    methods,
    paths,
    headers?.map((condition) => `header:${formatValue(condition)}`),
    query?.map((condition) => `query:${formatValue(condition)}`),
    ips && [...ips].map(([address, bits]) => `${address}/${bits}`),
    countries,
    asns?.map((asn) => `AS${asn}`),
    bots && [bots].flat().map((bot) => `bots:${bot.replaceAll(" ", "-").toLowerCase()}`),
  ]
    .filter((list) => list !== undefined)
    .map((list) => shortList(list).join(" "))
    .join(" ");
}

/** Formats a condition without the expected texts, because a text may be a secret. */
function formatValue({ name, expected }: NamedCondition): string {
  if (expected === true) return name;
  return expected === false ? `${name} (absent)` : `${name}=…`;
}

function shortList(list: readonly string[]): string[] {
  return list.length <= LISTED + 1
    ? [...list]
    : [...list.slice(0, LISTED), `and ${list.length - LISTED} more`];
}

// More people can read build logs, which have the output of `check`, than the configuration.

/**
 * Returns a rule without the values in `exempt` and in conditions, and without tier names that may
 * be credentials.
 */
export function withoutSecrets({ match, exempt, tiers, ...rule }: Rule): object {
  const { except, ...conditions } = match;
  return {
    ...rule,
    match: { ...withoutValues(conditions), ...(except && { except: withoutValues(except) }) },
    ...(exempt && {
      exempt: {
        ...exempt,
        headers: exempt.headers.map(({ name, value }) => ({
          name,
          value:
            typeof value === "string"
              ? "(not shown)"
              : { secret: printableSecretName(value.secret) },
        })),
      },
    }),
    ...(tiers && { tiers: printableTiers(tiers) }),
  };
}

function withoutValues({ headers, query, ...others }: Conditions): object {
  const hide = ({ name, expected }: NamedCondition) => ({
    name,
    expected: typeof expected === "boolean" ? expected : "(not shown)",
  });
  return {
    ...others,
    ...(headers && { headers: headers.map(hide) }),
    ...(query && { query: query.map(hide) }),
  };
}

function printableTiers({ by, windows, labels }: Tiers): Omit<Tiers, "labels"> {
  return {
    by,
    windows: new Map([...windows].map(([tier, each]) => [labels.get(tier) ?? "", each])),
  };
}
