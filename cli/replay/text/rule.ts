import { count, duration, styled, table, time } from "../../admin/text.ts";
import { addedUp, barChart, valuesPerBar } from "../../print/bar-chart.ts";
import { fitted, padded, WIDTH, wrapped } from "../../print/fit-text.ts";
import { knownCount } from "../../print/numbers.ts";
import type { RuleReport, Timeline, WorstWindow } from "../report.ts";
import { deniedOf, noneOf } from "../summary.ts";
import { deniedText } from "./clients.ts";

/** Beside a chart are its title and its highest value. */
const CHART_WIDTH = WIDTH - 40;
/** How many windows and clients of a rule are listed. `--json` has more. */
const LISTED = 5;
const INDENT = "  ";

/** Returns the section of a rule: its counts, a chart, its worst windows and its clients. */
export function ruleSection(rule: RuleReport, hasClients: boolean): string {
  const { name, mode, limits, key, match } = rule;
  const title = `${name} (${mode}): ${limits}, counted by ${key}, for ${match}`;
  const [first = "", ...rest] = wrapped(title, WIDTH);
  const details = [
    ...wrapped(countsOf(rule), WIDTH - 2),
    ...(rule.requests > 0 ? chartOf(rule.timeline) : []),
    ...(rule.denied > 0 ? windowsOf(rule.worstWindows) : []),
    ...(rule.denied > 0 && hasClients ? clientsOf(rule) : []),
  ];
  return [styled("bold", first), ...[...rest, ...details].map((line) => INDENT + line)].join("\n");
}

function countsOf(rule: RuleReport): string {
  if (rule.requests === 0) return "No request of the log matches this rule.";
  const verb =
    rule.mode === "enforce" ? "Over the limit" : `Over the limit (${rule.mode}: denies nothing)`;
  const succeeded = rule.denied > 0 ? `. Had succeeded: ${knownCount(rule.deniedSucceeded)}` : "";
  return `${verb}: ${rule.denied === 0 ? noneOf(rule) : deniedOf(rule)}${succeeded}.`;
}

function chartOf({ start, stepSeconds, allowed, denied }: Timeline): string[] {
  if (start === undefined) return [];
  const requests = allowed.map((value, step) => value + (denied[step] ?? 0));
  const perBar = valuesPerBar(requests.length, CHART_WIDTH);
  const barMs = perBar * stepSeconds * 1000;
  const bars = Math.ceil(requests.length / perBar);
  const end = Date.parse(start) + bars * barMs;
  const line = (title: string, values: readonly number[]) => {
    const highest = Math.max(...addedUp(values, CHART_WIDTH), 0);
    return `${title}  ${padded(barChart(values, CHART_WIDTH), bars)}  up to ${count(highest)} in ${duration(barMs)}`;
  };
  const hasDenied = denied.some((value) => value > 0);
  const [from, to] = [time(Date.parse(start)), time(end)];
  const axis =
    bars > from.length + to.length + 2 ? padded(from, bars - to.length) + to : `${from} to ${to}`;
  return [
    line("requests", requests),
    ...(hasDenied ? [line("denied  ", denied)] : []),
    styled("dim", `          ${axis}`),
  ];
}

function windowsOf(windows: readonly WorstWindow[]): string[] {
  const rows = windows
    .slice(0, LISTED)
    .map(({ policy, start, end, requests, denied }) => [
      `${start.slice(0, 19).replace("T", " ")}Z`,
      duration(Date.parse(end) - Date.parse(start)),
      fitted(policy, 40),
      requests ?? "",
      denied,
    ]);
  return indented(table(["WORST WINDOWS", "LENGTH", "POLICY", "REQUESTS", "DENIED"], rows));
}

function clientsOf({ mostDenied }: RuleReport): string[] {
  const rows = mostDenied
    .slice(0, LISTED)
    .map((client) => [
      fitted(client.client, 60),
      client.requests,
      deniedText(client),
      client.deniedSucceeded ?? "unknown",
    ]);
  return indented(table(["CLIENTS DENIED MOST", "REQUESTS", "DENIED", "HAD SUCCEEDED"], rows));
}

function indented(text: string): string[] {
  return text.split("\n");
}
