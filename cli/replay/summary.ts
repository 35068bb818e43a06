import {
  formatCount,
  formatDollars,
  formatDuration,
  formatEstimate,
  formatPercent,
  formatTime,
} from "../../src/admin/format.ts";
import type { ReportNote } from "../logs/needs.ts";
import type {
  ComparedClient,
  ComparedRule,
  Comparison,
  CostReport,
  Counts,
  DeniedClient,
  FailedBound,
  ReplayReport,
  RuleReport,
} from "./report.ts";
import type { ReportTable } from "./report-parts.ts";

// The sentences and the rows of a report, for all its forms. The sentences contain no text from the log.

/** Answers which requests and clients the configuration would have denied. */
export function summaryOf(report: ReplayReport): string[] {
  const { config, total } = report;
  if (hasNoRules(report)) {
    return [
      `No rule of ${config} could be replayed, so its decisions on ${requestsOf(total)} are unknown.`,
    ];
  }
  if (total.denied === 0) return [`${config} would have denied ${noneOf(total)}.`];
  const denied = `${config} would have denied ${deniedOf(total)}.`;
  return total.deniedSucceeded ? [denied, lossOf(total.deniedSucceeded, total)] : [denied];
}

/** Whether all rules were left out. Then no request is denied, but this says nothing about the rules. */
export function hasNoRules({ rules, leftOut }: ReplayReport): boolean {
  return rules.length === 0 && leftOut.length > 0;
}

/** Returns a text such as `412 of 10,000 requests (4.1%), from 23 of 1,753 clients`. */
export function deniedOf(counts: Counts): string {
  const { denied, clients, clientsDenied, isDeniedEstimate, deniedShare } = counts;
  const requests = `${formatCount(denied)} of ${requestsOf(counts)} (${formatPercent(deniedShare)})`;
  if (clients === 0) return requests;
  return `${requests}, from ${formatEstimate(clientsDenied, isDeniedEstimate)} of ${estimatedClients(counts)}`;
}

/** Returns a text such as `none of 10,000 requests from 1,753 clients`. */
export function noneOf(counts: Counts): string {
  return `none of ${requestsOf(counts)}${clientsOf(counts)}`;
}

function requestsOf({ requests }: Counts): string {
  return formatCount(requests, "request");
}

function clientsOf(counts: Counts): string {
  return counts.clients === 0 ? "" : ` from ${estimatedClients(counts)}`;
}

function estimatedClients({ clients, isEstimate }: Counts): string {
  return formatEstimate(clients, isEstimate, "client");
}

function lossOf(deniedSucceeded: number, { denied }: Counts): string {
  const subject =
    deniedSucceeded === denied
      ? `${denied === 1 ? "This request" : "All of these requests"}`
      : `${formatCount(deniedSucceeded)} of these requests`;
  return `${subject} had succeeded (status below 400): customers that you would have lost.`;
}

/** Returns how many requests and clients the two configurations treat differently. */
export function differenceOf({ against, requests, clients }: Comparison): string[] {
  const { newlyDenied, newlyDeniedSucceeded, newlyAllowed } = requests;
  if (newlyDenied === 0 && newlyAllowed === 0) {
    return [`Compared with ${against}, no request is decided differently.`];
  }
  const isKnown = newlyDenied > 0 && newlyDeniedSucceeded !== undefined;
  const lost = isKnown ? ` (${formatCount(newlyDeniedSucceeded)} of them had succeeded)` : "";
  const about = (value: number) => formatEstimate(value, clients.isEstimate);
  return [
    `Compared with ${against}: ${formatCount(newlyDenied, "request")} newly denied${lost}, ${formatCount(newlyAllowed)} newly allowed.`,
    `Clients: ${about(clients.newlyDenied)} newly denied, ${about(clients.noLongerDenied)} no longer denied, ${about(clients.deniedMore)} denied more often, ${about(clients.deniedLess)} denied less often.`,
  ];
}

/** Whether a rule or its verdicts differ between the two configurations. */
export function isDifferent({ change, overLimitBefore, overLimit }: ComparedRule): boolean {
  return change !== "same" || overLimitBefore !== overLimit;
}

/** Returns the mode of a rule, and its mode in the other configuration if that differs. */
export function modesOf({ modeBefore, mode }: ComparedRule): string {
  const isChanged = modeBefore !== undefined && mode !== undefined && modeBefore !== mode;
  return isChanged ? `${mode} (before: ${modeBefore})` : (mode ?? modeBefore ?? "");
}

/** Returns the notes of a report: first the rules that are left out, then all others. */
export function notesOf({ notes, leftOut, comparison }: ReplayReport): string[] {
  const { against, leftOut: leftOutBefore = [], notes: notesBefore = [] } = comparison ?? {};
  const reasonOf = ({ rule, reason }: ReplayReport["leftOut"][number]) =>
    `The rule "${rule}" is left out. ${reason}`;
  const known = new Set(notes.map(({ text }) => text));
  return [
    ...leftOut.map(reasonOf),
    ...notesBefore.filter(({ code }) => code === "unfair-comparison").map(({ text }) => text),
    ...withoutReasons(notes, leftOut).map(({ text }) => text),
    ...leftOutBefore.map((each) => `${against}: ${reasonOf(each)}`),
    ...withoutReasons(notesBefore, leftOutBefore)
      .filter(({ code }) => code !== "unfair-comparison")
      // Both engines have the same notes about the log.
      .filter(({ text }) => !known.has(text))
      .map(({ text }) => `${against}: ${text}`),
  ];
}

/** Removes notes that only repeat why rules are left out. */
export function withoutReasons(
  notes: readonly ReportNote[],
  leftOut: ReplayReport["leftOut"],
): ReportNote[] {
  const rules = new Set<string | undefined>(leftOut.map(({ rule }) => rule));
  return notes.filter(({ code, rule }) => code === "unfair-comparison" || !rules.has(rule));
}

/** How many clients a table lists. `--json` has more. */
const LISTED_CLIENTS = 10;
/** How many rules a table lists. */
const LISTED_RULES = 50;
/** The maximum width of a client on a terminal: an IPv6 address fits. */
const CLIENT_WIDTH = 45;

/** Returns the clients denied most. */
export function deniedClients(clients: readonly DeniedClient[]): ReportTable {
  const headings = ["Requests", "Denied", "Had succeeded"];
  return clientTable("Clients denied most", headings, clients, deniedNumbers);
}

/**
 * Returns the numbers of a client's requests, of its denied requests, and of those denied requests that had
 * succeeded.
 */
export function deniedNumbers(client: DeniedClient): (number | string)[] {
  const { requests, denied, error, deniedSucceeded = "unknown" } = client;
  const certain = error === 0 ? denied : `${formatCount(denied)} to ${formatCount(denied + error)}`;
  return [requests, certain, deniedSucceeded];
}

/** Returns the clients whose requests two configurations decide differently. */
export function comparedClients({ mostNewlyDenied, mostNewlyAllowed }: Comparison): ReportTable[] {
  const headings = ["Requests", "Denied before", "Denied", "Had succeeded"];
  const numbersOf = (client: ComparedClient) => {
    const { requests, deniedBefore, denied, newlyDeniedSucceeded = "unknown" } = client;
    return [requests, deniedBefore, denied, newlyDeniedSucceeded];
  };
  return [
    clientTable("Clients newly denied most", headings, mostNewlyDenied, numbersOf),
    clientTable("Clients newly allowed most", headings, mostNewlyAllowed, numbersOf),
  ];
}

type ListedClient = Pick<DeniedClient, "client" | "userAgents" | "paths">;

/**
 * Returns a table of clients, with their most frequent user agents and paths.
 *
 * @param headings the headings of the columns with numbers
 */
export function clientTable<Client extends ListedClient>(
  title: string,
  headings: readonly string[],
  clients: readonly Client[],
  numbersOf: (client: Client) => (number | string)[],
): ReportTable {
  const rows = clients
    .slice(0, LISTED_CLIENTS)
    .map((client) => [
      { code: client.client, width: CLIENT_WIDTH },
      ...numbersOf(client),
      { code: client.userAgents[0]?.text ?? "" },
      { code: client.paths[0]?.text ?? "" },
    ]);
  return {
    title,
    headings: ["Client", ...headings, "User agent", "Path"],
    rows,
    more: clients.length - rows.length,
  };
}

/** Returns the rules that were added, removed or changed, or whose verdicts differ. */
export function comparedRules({ against, rules }: Comparison): ReportTable {
  const different = rules.filter(isDifferent);
  const rows = different.slice(0, LISTED_RULES).map((compared) => {
    const { rule, change, overLimitBefore, overLimit, deniedBefore, denied } = compared;
    // A number is missing if the rule is not replayed.
    const numbers = [overLimitBefore, overLimit, deniedBefore, denied];
    return [{ code: rule }, change, modesOf(compared), ...numbers.map((number) => number ?? "-")];
  });
  return {
    title: `Rules, compared with ${against}`,
    headings: [
      ...["Rule", "Change", "Mode"],
      ...["Over limit before", "Over limit", "Denied before", "Denied"],
    ],
    rows,
    more: different.length - rows.length,
  };
}

export function replayedRules(rules: readonly RuleReport[]): ReportTable {
  const rows = rules
    .slice(0, LISTED_RULES)
    .map((rule) => [
      { code: rule.name },
      rule.mode,
      rule.limits,
      rule.requests,
      `${formatCount(rule.denied)} (${formatPercent(rule.deniedShare)})`,
      rule.deniedSucceeded ?? "unknown",
      formatEstimate(rule.clients, rule.isEstimate),
      formatEstimate(rule.clientsDenied, rule.isDeniedEstimate),
    ]);
  return {
    headings: [
      ...["Rule", "Mode", "Limit", "Requests", "Over the limit", "Had succeeded", "Clients"],
      "Clients over the limit",
    ],
    rows,
    more: rules.length - rows.length,
  };
}

/** Returns why the command ends with 1. */
export function failureOf({ option, allowed, clients }: FailedBound): string {
  const kind = option === "--max-denied" ? "denied" : "newly denied";
  return `FAILED: ${formatCount(clients, "client")} ${clients === 1 ? "is" : "are"} ${kind}. ${option} allows ${formatCount(allowed)}.`;
}

export function logOf({ log }: ReplayReport): string[] {
  const { files, formats, from, to, lines, requests, broken, late, outside, ignored } = log;
  const kinds = [...new Set(formats)].join(", ");
  const others = [
    broken > 0 && `${formatCount(broken)} could not be read`,
    late > 0 && `${formatCount(late)} came too late`,
    outside > 0 && `${formatCount(outside)} outside the given time`,
    ignored > 0 && `${formatCount(ignored)} not requests`,
  ].filter((text) => text !== false);
  const counts = `${formatCount(lines, "line")}, ${formatCount(requests, "request")}`;
  return [
    `${listOf(files)} (${kinds}): ${[counts, ...others].join(", ")}.`,
    ...(from && to ? [`${periodOf(from, to)}.`] : []),
  ];
}

function periodOf(from: string, to: string): string {
  const [start, end] = [Date.parse(from), Date.parse(to)];
  return `From ${formatTime(start)} to ${formatTime(end)} (${formatDuration(end - start)})`;
}

function listOf(files: readonly string[]): string {
  const [first = "", ...others] = files;
  return others.length === 0 ? first : `${first} and ${formatCount(others.length, "other file")}`;
}

/** Returns what the calls to the store would have cost. */
export function costOf(cost: CostReport): string {
  const { unit, count: used, dollars: price, dollarsPer30Days } = cost;
  const month =
    dollarsPer30Days === undefined
      ? ""
      : `, ${formatDollars(dollarsPer30Days)} in 30 days at this rate`;
  return `Cost of the store: ${formatDollars(price)} for ${formatCount(used)} ${unit}${month}.`;
}
