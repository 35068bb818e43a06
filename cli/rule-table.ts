import { formatDuration } from "../src/config/duration.ts";
import type { KeyExpression } from "../src/config/key-expression.ts";
import type { Conditions, Match } from "../src/config/match.ts";
import type { Rule, Window } from "../src/config/rule.ts";
import { printableTiers } from "./redaction.ts";

const HEADINGS = ["RULE", "COUNTED BY", "QUOTA", "REQUESTS", "ON ERROR", "MODE", "ALSO"];

/**
 * How many items of a long list are printed. This maximum keeps a row readable even if a rule has
 * fifty paths.
 */
const LISTED = 3;

/** Returns a table with one line for each rule. */
export function ruleTable(rules: readonly Rule[]): string {
  const rows = withoutEmptyLast([HEADINGS, ...rules.map(cellsOf)]);
  const widths = HEADINGS.map((_, column) =>
    Math.max(...rows.map((cells) => cells[column]?.length ?? 0)),
  );
  return rows
    .map((cells) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n");
}

/** Removes the last column if it is empty. This column shows fields that few rules have. */
function withoutEmptyLast([headings = [], ...rows]: string[][]): string[][] {
  const isUsed = rows.some((cells) => cells.at(-1) !== "");
  return [headings, ...rows].map((cells) => (isUsed ? cells : cells.slice(0, -1)));
}

function cellsOf(rule: Rule): string[] {
  const { name, key, windows, match, onError, mode } = rule;
  const requests = rule.for === "programs" ? "none, only calls of programs" : formatMatch(match);
  return [
    name,
    formatKey(key),
    windows.map(formatQuota).join(", "),
    requests,
    onError,
    mode,
    formatRest(rule),
  ];
}

/** Formats the fields that few rules have, in the order in which Weir applies them to a request. */
function formatRest(rule: Rule): string {
  const { exempt, tiers, spread, shards, cost, countStatus, banMs, retryJitterMs } = rule;
  const exemptions = exempt && [
    ...exempt.networks.map(([address, bits]) => `${address}/${bits}`),
    ...exempt.headers.map(({ name }) => name),
  ];
  return [
    exemptions && `not ${shortList(exemptions).join(" ")}`,
    tiers &&
      `${formatKey(tiers.by)}: ${shortList([...printableTiers(tiers)].map(formatTier)).join("; ")}`,
    spread && "windows spread",
    shards > 1 && `${shards} shards`,
    typeof cost === "object" && `costs header:${cost.header}`,
    typeof cost === "number" && cost !== 1 && `costs ${cost}`,
    countStatus && `counts ${shortList(countStatus.map(String)).join(" ")}`,
    banMs !== undefined && `ban ${formatDuration(banMs / 1000)}`,
    retryJitterMs > 0 && `jitter ${formatDuration(retryJitterMs / 1000)}`,
  ]
    .filter(Boolean)
    .join("; ");
}

function formatTier([name, windows]: [string, readonly Window[]]): string {
  return `${name} ${windows.map(formatQuota).join(", ")}`;
}

/**
 * Formats a key as it is written in a configuration. It joins alternatives by " | " and combined
 * elements by commas.
 */
function formatKey(key: KeyExpression): string {
  return key
    .map((alternatives) =>
      alternatives
        .map((part) => ("name" in part ? `${part.kind}:${part.name}` : part.kind))
        .join(" | "),
    )
    .join(", ");
}

function formatQuota({ limit, capacity, maxReserved, windowMs, offsetMs }: Window): string {
  const quota = `${limit} per ${formatDuration(windowMs / 1000)}`;
  const details = [
    capacity !== limit && `up to ${capacity}`,
    maxReserved > 0 && `${maxReserved} ahead`,
    offsetMs > 0 && `offset ${formatDuration(offsetMs / 1000)}`,
  ].filter(Boolean);
  return details.length === 0 ? quota : `${quota} (${details.join(", ")})`;
}

function formatMatch({ except, ...conditions }: Match): string {
  const selected = formatConditions(conditions) || "every request";
  return except ? `${selected}, except ${formatConditions(except)}` : selected;
}

function formatConditions({ hosts, methods, paths }: Conditions): string {
  return [hosts, methods, paths]
    .filter((list) => list !== undefined)
    .map((list) => shortList(list).join(" "))
    .join(" ");
}

function shortList(list: readonly string[]): string[] {
  return list.length <= LISTED + 1
    ? [...list]
    : [...list.slice(0, LISTED), `and ${list.length - LISTED} more`];
}
