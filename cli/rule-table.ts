import { formatDuration } from "../src/config/duration.ts";
import type { KeyExpression } from "../src/config/key-expression.ts";
import type { Conditions, Match } from "../src/config/match.ts";
import type { Rule, Window } from "../src/config/rule.ts";

const HEADINGS = ["RULE", "COUNTED BY", "QUOTA", "REQUESTS", "ON ERROR", "MODE"];

/** Items of one list that are written out: a row should stay readable with fifty paths in a rule. */
const LISTED = 3;

/** Shows rules one to a line, in columns: what is counted, by whom, and what happens then. */
export function ruleTable(rules: readonly Rule[]): string {
  const rows = [HEADINGS, ...rules.map(cellsOf)];
  const widths = HEADINGS.map((_, column) =>
    Math.max(...rows.map((cells) => cells[column]?.length ?? 0)),
  );
  return rows
    .map((cells) => cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  "))
    .map((line) => line.trimEnd())
    .join("\n");
}

function cellsOf({ name, key, windows, match, onError, mode }: Rule): string[] {
  return [
    name,
    formatKey(key),
    windows.map(formatQuota).join(", "),
    formatMatch(match),
    onError,
    mode,
  ];
}

/** As in a configuration: "a | b" for the first one present, a comma between what counts together. */
function formatKey(key: KeyExpression): string {
  return key
    .map((alternatives) =>
      alternatives
        .map((part) => ("name" in part ? `${part.kind}:${part.name}` : part.kind))
        .join(" | "),
    )
    .join(", ");
}

function formatQuota({ limit, windowMs, offsetMs }: Window): string {
  const quota = `${limit} per ${formatDuration(windowMs / 1000)}`;
  return offsetMs === 0 ? quota : `${quota} (offset ${formatDuration(offsetMs / 1000)})`;
}

function formatMatch({ except, ...conditions }: Match): string {
  const selected = formatConditions(conditions) || "every request";
  return except ? `${selected}, except ${formatConditions(except)}` : selected;
}

function formatConditions({ hosts, methods, paths }: Conditions): string {
  return [hosts, methods, paths]
    .filter((list) => list !== undefined)
    .map((list) => shortened(list).join(" "))
    .join(" ");
}

function shortened(list: readonly string[]): string[] {
  return list.length <= LISTED + 1
    ? [...list]
    : [...list.slice(0, LISTED), `and ${list.length - LISTED} more`];
}
