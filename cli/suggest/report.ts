import { formatCount, formatPercent, formatTime } from "../../src/admin/format.ts";
import type { MatchInput } from "../../src/config/match.ts";
import type { Window } from "../../src/config/rule.ts";
import { formatWindow } from "../../src/config/window.ts";
import { markdownCode, padded, styled, WIDTH, wrapped } from "../print/text.ts";
import {
  brokenLinesText,
  joined,
  markdownNotes,
  markdownTable,
  type ReportTable,
  textNotes,
  textTable,
} from "../replay/report-parts.ts";
import { clientTable } from "../replay/summary.ts";
import { neverBinds } from "../warnings/limits.ts";
import { hasHiddenValue, literal, type RequestedRule, withoutValues } from "./requested-rule.ts";
import type { HistogramBar, ProposedLimit, Suggestion, WindowSuggestion } from "./suggestion.ts";

/** Formats the range of a bar, such as `3 - 4`. */
function rangeText({ from, to }: HistogramBar): string {
  return from === to ? formatCount(from) : `${formatCount(from)} - ${formatCount(to)}`;
}

/** Formats the share of a limit: 0.001 → `0.1%`. */
function shareText(share: number): string {
  return `${Number((share * 100).toPrecision(12))}%`;
}

/** Returns the title of the text to paste: a rule, or the limits of a rule that exists already. */
function pasted({ config }: Pick<Suggestion, "config">): string {
  return `${config === undefined ? "The rule" : "The limits"}, ready to paste`;
}

interface Limit {
  readonly window: Window;
  readonly proposed: ProposedLimit;
}

/**
 * Returns the source of a rule with the proposed limits, in shadow mode. For a rule that exists already, returns
 * the fields with its limits.
 *
 * @param suggestions one for each window of the rule
 */
export function ruleText(
  { name, file, input, windows }: RequestedRule,
  suggestions: readonly WindowSuggestion[],
  clients: number,
): string | undefined {
  const limits = bindingLimits(windows, suggestions);
  if (limits.length === 0) return undefined;
  const limitLines = linesOf(limits, clients);
  if (!input) {
    return [`// In the rule ${literal(name)} of ${printableFile(file)}:`, ...limitLines].join("\n");
  }
  const { match, key } = input;
  const lines = [
    `name: ${literal(name)},`,
    ...(match ? matchLines(match) : []),
    `key: ${literal(key)},`,
    ...limitLines,
    "// Counts and logs, but denies nothing. Remove this line to enforce the limits.",
    'mode: "shadow",',
  ];
  return ["{", ...lines.map((line) => `  ${line}`), "},"].join("\n");
}

/** Values of header fields and query parameters may be secrets, and reports are often shared. */
function matchLines(match: MatchInput): string[] {
  const hidden = withoutValues(match);
  const line = `match: ${literal(hidden)},`;
  if (!hasHiddenValue(hidden)) return [line];
  return [
    `// Write the values of the header fields and query parameters in place of each "…".`,
    line,
  ];
}

/** Removes line breaks, which would end the comment with the file's name. */
function printableFile(file = ""): string {
  return literal(file).slice(1, -1);
}

/** Leaves out limits that would deny no request, because another one denies earlier. */
function bindingLimits(
  windows: readonly Window[],
  suggestions: readonly WindowSuggestion[],
): Limit[] {
  const all = windows.flatMap((window, index): Limit[] => {
    const proposed = suggestions[index]?.proposed;
    return proposed ? [{ window: withLimit(window, proposed.limit), proposed }] : [];
  });
  return all.filter(
    ({ window }) =>
      !all.some((other) => other.window !== window && neverBinds(window, other.window, false)),
  );
}

function withLimit(window: Window, limit: number): Window {
  return { ...window, limit, capacity: limit, maxReserved: 0 };
}

function linesOf(limits: readonly Limit[], clients: number): string[] {
  const [first, ...others] = limits as [Limit, ...Limit[]];
  if (others.length === 0) {
    return [
      figures(first, clients),
      `limit: ${first.proposed.limit},`,
      `window: ${literal(formatWindow(first.window))},`,
    ];
  }
  const elements = limits.flatMap((each) => [
    figures(each, clients),
    `{ limit: ${each.proposed.limit}, window: ${literal(formatWindow(each.window))} },`,
  ]);
  return ["limits: [", ...elements.map((line) => `  ${line}`), "],"];
}

function figures({ window, proposed }: Limit, clients: number): string {
  const { limit, clientsDenied, requestsDenied } = proposed;
  const where = `more than ${formatCount(limit, "request")} in ${formatWindow(window)}`;
  if (clientsDenied === 0) return `// In the log, no client sent ${where}.`;
  return `// In the log, ${formatCount(clientsDenied)} of ${formatCount(clients, "client")} sent ${where}: ${formatCount(requestsDenied, "request")} too many.`;
}

const BAR_WIDTH = 60;
const BAR = "█";

/** Returns a suggestion as a report for a terminal, at most 120 columns wide, except for the rule. */
export function suggestionText(suggestion: Suggestion): string {
  const { match, key, windows, rule, notes, log } = suggestion;
  const title = wrapped(`Limits for ${match}, counted by ${key}`, WIDTH);
  return joined([
    [...title.map((line) => styled("bold", line)), ...wrapped(numbersOf(suggestion), WIDTH)].join(
      "\n",
    ),
    textNotes(notes.map(({ text }) => text)),
    ...limitTables(suggestion).map(textTable),
    ...windows.filter(({ histogram }) => histogram.length > 0).map(histogramText),
    textTable(loudestTable(suggestion)),
    rule === undefined ? "" : `${styled("bold", pasted(suggestion))}\n${rule}`,
    brokenLinesText(log),
  ]);
}

/** Returns a suggestion as Markdown. No text of the log can become a link, an image or HTML in it. */
export function suggestionMarkdown(suggestion: Suggestion): string {
  const { match, key, windows, rule, notes } = suggestion;
  return joined([
    `## Limits for ${markdownCode(match)}, counted by ${markdownCode(key)}`,
    `${numbersOf(suggestion)}.`,
    markdownNotes(notes.map(({ text }) => text)),
    ...limitTables(suggestion).map(markdownTable),
    rule === undefined ? "" : `### ${pasted(suggestion)}\n\n${fenced(rule)}`,
    ...windows.map(histogramTable).map(markdownTable),
    markdownTable(loudestTable(suggestion)),
  ]);
}

function numbersOf({ requests, clients, log: { lines, from, to } }: Suggestion): string {
  const period =
    from && to ? `, from ${formatTime(Date.parse(from))} to ${formatTime(Date.parse(to))}` : "";
  return `${formatCount(requests, "request")} of ${formatCount(clients, "client")}, in ${formatCount(lines, "line")}${period}`;
}

function limitTables({ windows, requests }: Suggestion): ReportTable[] {
  if (requests === 0) return [];
  const perWindow = windows.map(({ window, clientWindows, median, p95, p99, max }) => [
    window,
    ...[median, p95, p99, max, clientWindows],
  ]);
  const limits = windows.flatMap((each) =>
    each.limits.map(({ share, limit, clientsDenied, requestsDenied }) => [
      ...[each.window, shareText(share)],
      ...[limit, clientsDenied, requestsDenied],
    ]),
  );
  return [
    {
      title: "Requests of one client in one window",
      headings: ["Window", "Median", "95%", "99%", "Most", "Client windows"],
      rows: perWindow,
    },
    {
      title: "The lowest limits that deny at most a share of the clients, at least once",
      headings: ["Window", "Share", "Limit", "Clients denied", "Requests denied"],
      rows: limits,
    },
  ];
}

function histogramTable({ window, histogram }: WindowSuggestion): ReportTable {
  return {
    title: histogramTitle(window),
    headings: ["Requests", "Clients"],
    rows: histogram.map((bar) => [rangeText(bar), bar.clients]),
  };
}

function histogramTitle(window: string): string {
  return `Clients by the requests in their busiest window of ${window}`;
}

function histogramText({ window, histogram }: WindowSuggestion): string {
  const ranges = histogram.map(rangeText);
  const width = Math.max(...ranges.map(({ length }) => length));
  const most = Math.max(...histogram.map(({ clients }) => clients));
  const lines = histogram.map(({ clients }, index) => {
    // Any number above 0 has a visible bar.
    const length = clients === 0 ? 0 : Math.max(1, Math.round((clients / most) * BAR_WIDTH));
    const bar = length === 0 ? "" : `${styled("cyan", BAR.repeat(length))} `;
    return `${padded(ranges[index] ?? "", width, "left")}  ${bar}${formatCount(clients)}`;
  });
  return [styled("bold", histogramTitle(window)), ...lines].join("\n");
}

function loudestTable({ loudest, windows }: Suggestion): ReportTable {
  const shortest = windows[0]?.window ?? "";
  return clientTable(
    `The loudest clients, by their busiest window of ${shortest}`,
    ["Most", "From", "Requests", "Succeeded"],
    loudest,
    ({ busiest, busiestStart, requests, succeeded }) => [
      busiest,
      formatTime(Date.parse(busiestStart)),
      requests,
      formatPercent(succeeded / requests),
    ],
  );
}

/** Begins the block with more backquotes than the rule has, so that the rule cannot end it. */
function fenced(rule: string): string {
  const longest = Math.max(2, ...[...rule.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}ts\n${rule}\n${fence}`;
}
