import {
  formatCount,
  formatCountIfKnown,
  formatDuration,
  formatPercent,
  formatTime,
} from "../../src/admin/format.ts";
import type { ReportNote } from "../logs/needs.ts";
import { styled, WIDTH, wrapped } from "../print/text.ts";
import type {
  Comparison,
  Counts,
  DeniedClient,
  FailedBound,
  ReplayReport,
  RuleReport,
} from "./report.ts";
import { brokenLinesText, joined, type ReportTable, textNotes, textTable } from "./report-parts.ts";

/** How many clients a table lists, and how many of one rule. `--json` has more. */
const LISTED_CLIENTS = 10;
const LISTED_OF_RULE = 5;

/** Returns the report for a terminal, at most 120 columns wide. It ends without a line break. */
export function textReport(report: ReplayReport): string {
  const { total, rules, comparison } = report;
  return joined([
    headline(report),
    textNotes(notesOf(report)),
    comparison ? textTable(comparedClients(comparison)) : "",
    ...rules.map((rule) => ruleSection(rule, rules.length > 1)),
    textTable(deniedClients(total.mostDenied, LISTED_CLIENTS)),
    brokenLinesText(report.log),
    ...[
      logOf(report)
        .flatMap((sentence) => wrapped(sentence, WIDTH))
        .join("\n"),
    ],
  ]);
}

function headline(report: ReplayReport): string {
  const { comparison, failed, total } = report;
  const [first = "", ...others] = summaryOf(report);
  const sentences = [...others, ...(comparison ? differenceOf(comparison) : [])];
  return [
    ...wrapped(first, WIDTH).map((line) =>
      styled(total.denied > 0 ? ["bold", "yellow"] : "bold", line),
    ),
    ...sentences.flatMap((sentence) => wrapped(sentence, WIDTH)),
    ...failed.map((bound) => styled("red", failureOf(bound))),
  ].join("\n");
}

/** Answers which requests and clients the configuration would have denied. */
function summaryOf({ config, total, rules, leftOut }: ReplayReport): string[] {
  // If all rules were left out, no request is denied, but this says nothing about the rules.
  if (rules.length === 0 && leftOut.length > 0) {
    return [
      `No rule of ${config} could be replayed, so its decisions on ${requestsOf(total)} are unknown.`,
    ];
  }
  if (total.denied === 0) return [`${config} would have denied ${noneOf(total)}.`];
  const denied = `${config} would have denied ${deniedOf(total)}.`;
  return total.deniedSucceeded ? [denied, lossOf(total.deniedSucceeded, total)] : [denied];
}

/** Returns a text such as `412 of 10,000 requests (4.1%), from 23 of 1,753 clients`. */
function deniedOf(counts: Counts): string {
  const { denied, clients, clientsDenied, deniedShare } = counts;
  const requests = `${formatCount(denied)} of ${requestsOf(counts)} (${formatPercent(deniedShare)})`;
  if (clients === 0) return requests;
  return `${requests}, from ${formatCount(clientsDenied)} of ${formatCount(clients, "client")}`;
}

/** Returns a text such as `none of 10,000 requests from 1,753 clients`. */
function noneOf(counts: Counts): string {
  const { clients } = counts;
  return `none of ${requestsOf(counts)}${clients === 0 ? "" : ` from ${formatCount(clients, "client")}`}`;
}

function requestsOf({ requests }: Counts): string {
  return formatCount(requests, "request");
}

function lossOf(deniedSucceeded: number, { denied }: Counts): string {
  const all = denied === 1 ? "This request" : "All of these requests";
  const subject =
    deniedSucceeded === denied ? all : `${formatCount(deniedSucceeded)} of these requests`;
  return `${subject} had succeeded (status below 400): customers that you would have lost.`;
}

/** Returns how many requests and clients the two configurations treat differently. */
function differenceOf({ against, requests, clients }: Comparison): string[] {
  const { newlyDenied, newlyDeniedSucceeded, newlyAllowed } = requests;
  if (newlyDenied === 0 && newlyAllowed === 0) {
    return [`Compared with ${against}, no request is decided differently.`];
  }
  const isKnown = newlyDenied > 0 && newlyDeniedSucceeded !== undefined;
  const lost = isKnown ? ` (${formatCount(newlyDeniedSucceeded)} of them had succeeded)` : "";
  return [
    `Compared with ${against}: ${formatCount(newlyDenied, "request")} newly denied${lost}, ${formatCount(newlyAllowed)} newly allowed.`,
    `Clients: ${formatCount(clients.newlyDenied)} newly denied, ${formatCount(clients.noLongerDenied)} no longer denied.`,
  ];
}

/** Returns the notes of a report: first the rules that are left out, then all others. */
function notesOf({ notes, leftOut, comparison }: ReplayReport): string[] {
  const { against, leftOut: leftOutBefore = [], notes: notesBefore = [] } = comparison ?? {};
  const reasonOf = ({ rule, reason }: ReplayReport["leftOut"][number]) =>
    `The rule "${rule}" is left out. ${reason}`;
  const isUnfair = ({ code }: ReportNote) => code === "unfair-comparison";
  const known = new Set(notes.map(({ text }) => text));
  return [
    ...leftOut.map(reasonOf),
    ...notesBefore.filter(isUnfair).map(({ text }) => text),
    ...withoutReasons(notes, leftOut).map(({ text }) => text),
    ...leftOutBefore.map((each) => `${against}: ${reasonOf(each)}`),
    ...withoutReasons(notesBefore, leftOutBefore)
      // Both engines have the same notes about the log.
      .filter((note) => !isUnfair(note) && !known.has(note.text))
      .map(({ text }) => `${against}: ${text}`),
  ];
}

/** Removes notes that only repeat why rules are left out. */
function withoutReasons(
  notes: readonly ReportNote[],
  leftOut: ReplayReport["leftOut"],
): ReportNote[] {
  const rules = new Set<string | undefined>(leftOut.map(({ rule }) => rule));
  return notes.filter(({ rule }) => !rules.has(rule));
}

/** Returns the clients that lose most by the other rules. */
function comparedClients({ mostNewlyDenied }: Comparison): ReportTable {
  return {
    title: "Clients newly denied most",
    headings: ["Client", "Requests", "Denied before", "Denied", "Newly denied", "Had succeeded"],
    rows: mostNewlyDenied.map((each) => [
      { code: each.client },
      ...[each.requests, each.deniedBefore, each.denied, each.newlyDenied],
      each.newlyDeniedSucceeded ?? "unknown",
    ]),
    max: LISTED_CLIENTS,
  };
}

function deniedClients(clients: readonly DeniedClient[], max: number): ReportTable {
  return {
    headings: ["Clients denied most", "Requests", "Denied", "Had succeeded", "First denied"],
    rows: clients.map((each) => [
      { code: each.client },
      ...[each.requests, each.denied, each.deniedSucceeded ?? "unknown"],
      formatTime(Date.parse(each.firstDenied)),
    ]),
    max,
  };
}

/** Returns the section of a rule: its counts and its clients. */
function ruleSection(rule: RuleReport, hasClients: boolean): string {
  const { name, mode, limits, key, match } = rule;
  const title = `${name} (${mode}): ${limits}, counted by ${key}, for ${match}`;
  const [first = "", ...rest] = wrapped(title, WIDTH);
  const clients = hasClients
    ? textTable(deniedClients(rule.mostDenied, LISTED_OF_RULE), WIDTH - 2)
    : "";
  const details = [...wrapped(countsOf(rule), WIDTH - 2), ...(clients ? clients.split("\n") : [])];
  return [styled("bold", first), ...[...rest, ...details].map((line) => `  ${line}`)].join("\n");
}

function countsOf(rule: RuleReport): string {
  if (rule.requests === 0) return "No request of the log matches this rule.";
  const verb =
    rule.mode === "enforce" ? "Over the limit" : `Over the limit (${rule.mode}: denies nothing)`;
  const succeeded =
    rule.denied > 0 ? `. Had succeeded: ${formatCountIfKnown(rule.deniedSucceeded)}` : "";
  const open =
    rule.mostOpen === undefined ? "" : ` Most open requests of a client: ${rule.mostOpen}.`;
  return `${verb}: ${rule.denied === 0 ? noneOf(rule) : deniedOf(rule)}${succeeded}.${open}`;
}

/** Returns why the command ends with 1. */
function failureOf({ option, allowed, clients }: FailedBound): string {
  const kind = option === "--max-denied" ? "denied" : "newly denied";
  return `FAILED: ${formatCount(clients, "client")} ${clients === 1 ? "is" : "are"} ${kind}. ${option} allows ${formatCount(allowed)}.`;
}

function logOf({ log }: ReplayReport): string[] {
  const { files, formats, from, to, lines, requests, broken, outside, ignored } = log;
  const [first = "", ...others] = files;
  const named =
    others.length === 0 ? first : `${first} and ${formatCount(others.length, "other file")}`;
  const counts = [
    `${formatCount(lines, "line")}, ${formatCount(requests, "request")}`,
    broken > 0 && `${formatCount(broken)} could not be read`,
    outside > 0 && `${formatCount(outside)} outside the given time`,
    ignored > 0 && `${formatCount(ignored)} not requests`,
  ].filter((text) => text !== false);
  return [
    `${named} (${[...new Set(formats)].join(", ")}): ${counts.join(", ")}.`,
    ...(from && to ? [periodOf(Date.parse(from), Date.parse(to))] : []),
  ];
}

function periodOf(start: number, end: number): string {
  return `From ${formatTime(start)} to ${formatTime(end)} (${formatDuration(end - start)}).`;
}
