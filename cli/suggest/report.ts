import { formatCount, formatPercent, formatTime } from "../../src/admin/format.ts";
import type { MatchInput } from "../../src/config/match.ts";
import type { Window } from "../../src/config/rule.ts";
import { formatWindow } from "../../src/config/window.ts";
import {
  fitted,
  markdownCode,
  markdownText,
  padded,
  styled,
  table,
  WIDTH,
  wrapped,
} from "../print/text.ts";
import type { Frequent } from "../replay/report.ts";
import { neverBinds } from "../warnings/limits.ts";
import { hasHiddenValue, literal, type RequestedRule, withoutValues } from "./requested-rule.ts";
import type {
  HistogramBar,
  LoudClient,
  ProposedLimit,
  Suggestion,
  WindowSuggestion,
} from "./suggestion.ts";

/** Returns some lines about each client. */
function loudestText(loudest: readonly LoudClient[]): string {
  return loudest.flatMap(loudestLines).join("\n");
}

function loudestLines(loud: LoudClient): string[] {
  const { client, userAgents, paths } = loud;
  const details = [numbersOf(loud), frequent("paths", paths), frequent("agents", userAgents)];
  return [
    fitted(client, WIDTH),
    ...details.filter((text) => text !== "").map((text) => `  ${fitted(text, WIDTH - 2)}`),
  ];
}

function numbersOf({ busiest, busiestStart, requests, succeeded }: LoudClient): string {
  return `${formatCount(busiest, "request")} from ${formatTime(Date.parse(busiestStart))}, ${formatCount(requests)} in all, ${formatPercent(succeeded / requests)} of them succeeded`;
}

function frequent(title: string, texts: readonly Frequent[]): string {
  // Texts that occur once say little, unless there is nothing else.
  const repeated = texts.filter((each) => each.count > 1);
  const shown = repeated.length > 0 ? repeated : texts.slice(0, 1);
  // Each text gets its part of the line, so that a long one does not hide the others.
  const width = Math.floor((WIDTH - title.length - 4) / Math.max(1, shown.length)) - 2;
  const parts = shown.map(({ text, count: times }) =>
    fitted(`${formatCount(times)} × ${text}`, width),
  );
  return parts.length === 0 ? "" : `${title}: ${parts.join(", ")}`;
}

/** Formats the range of a bar: `3-4`. */
function rangeText({ from, to }: HistogramBar): string {
  return from === to ? formatCount(from) : `${formatCount(from)} - ${formatCount(to)}`;
}

/** Formats the share of a limit: 0.001 → `0.1%`. */
function shareText(share: number): string {
  return `${Number((share * 100).toPrecision(12))}%`;
}

/** Returns what users paste: for a rule that exists already, only its limits. */
function pasted({ config }: Pick<Suggestion, "config">): string {
  return config === undefined ? "The rule" : "The limits";
}

/** A window, and the limit that the rule has for it. */
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

/** A comment ends at the end of its line. */
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

/** Returns a suggestion as a report for a terminal, at most 120 columns wide, but for the rule. */
export function suggestionText(suggestion: Suggestion): string {
  const { windows, loudest, rule, requests } = suggestion;
  const shortest = windows[0]?.window ?? "";
  const sections = [
    headline(suggestion),
    notesText(suggestion),
    ...(requests === 0 ? [] : [perWindow(windows), limitTable(windows)]),
    ...windows.filter(({ histogram }) => histogram.length > 0).map(histogramText),
    loudest.length === 0
      ? ""
      : section(
          `The loudest clients, by their busiest window of ${shortest}`,
          loudestText(loudest),
        ),
    rule === undefined ? "" : section(`${pasted(suggestion)}, ready to paste`, rule),
  ];
  return sections.filter((text) => text !== "").join("\n\n");
}

/** Returns a text below a title. */
function section(title: string, text: string): string {
  return `${styled("bold", title)}\n${text}`;
}

function headline({ match, key, requests, clients, log }: Suggestion): string {
  const { from, to } = log;
  const period =
    from && to ? `, from ${formatTime(Date.parse(from))} to ${formatTime(Date.parse(to))}` : "";
  const numbers = `${formatCount(requests, "request")} of ${formatCount(clients, "client")}, in ${formatCount(log.lines, "line")}${period}`;
  return [
    ...wrapped(`Limits for ${match}, counted by ${key}`, WIDTH).map((line) => styled("bold", line)),
    ...wrapped(numbers, WIDTH),
  ].join("\n");
}

function notesText({ notes, log }: Suggestion): string {
  const broken = log.brokenLines.map(({ file, line, reason }) => `${file}:${line}: ${reason}`);
  return [
    ...notes.flatMap(({ text }) =>
      wrapped(text, WIDTH - 2).map((line, at) => (at === 0 ? `! ${line}` : `  ${line}`)),
    ),
    ...broken.map((text) => `  ${fitted(text, WIDTH - 2)}`),
  ]
    .map((line) => styled("yellow", line))
    .join("\n");
}

function perWindow(windows: readonly WindowSuggestion[]): string {
  const rows = windows.map(({ window, clientWindows, median, p95, p99, max }) => [
    window,
    ...[median, p95, p99, max, clientWindows],
  ]);
  const headings = ["WINDOW", "MEDIAN", "95%", "99%", "MOST", "CLIENT WINDOWS"];
  return section("Requests of one client in one window", table(headings, rows));
}

function limitTable(windows: readonly WindowSuggestion[]): string {
  const rows = windows.flatMap(({ window, limits }) =>
    limits.map(({ share, limit, clientsDenied, requestsDenied }) => [
      ...[window, shareText(share)],
      ...[limit, clientsDenied, requestsDenied],
    ]),
  );
  const headings = ["WINDOW", "SHARE", "LIMIT", "CLIENTS DENIED", "REQUESTS DENIED"];
  const title = "The lowest limits that deny at most a share of the clients, at least once";
  return section(title, table(headings, rows));
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
  return section(`Clients by the requests in their busiest window of ${window}`, lines.join("\n"));
}

/** Returns a suggestion as Markdown. No text of the log can become a link, an image or HTML in it. */
export function suggestionMarkdown(suggestion: Suggestion): string {
  const { windows, loudest, rule, notes, requests } = suggestion;
  const shortest = windows[0]?.window ?? "";
  const sections = [
    markdownHeadline(suggestion),
    notes.map(({ text }) => `- ${markdownText(text)}`).join("\n"),
    requests === 0 ? "" : markdownLimits(windows),
    ...(rule === undefined ? [] : [`${pasted(suggestion)}, ready to paste:`, fenced(rule)]),
    ...windows.filter(({ histogram }) => histogram.length > 0).map(histogramTable),
    loudest.length === 0 ? "" : loudestTable(loudest, shortest),
  ];
  return sections.filter((text) => text !== "").join("\n\n");
}

function markdownHeadline({ match, key, requests, clients, log }: Suggestion): string {
  const { from, to } = log;
  const period = from && to ? `, from ${from} to ${to}` : "";
  return [
    `## Limits for ${markdownCode(match)}, counted by ${markdownCode(key)}`,
    `${formatCount(requests, "request")} of ${formatCount(clients, "client")}, in ${formatCount(log.lines, "line")}${period}.`,
  ].join("\n\n");
}

function markdownLimits(windows: readonly WindowSuggestion[]): string {
  const rows = windows.flatMap(({ window, limits }) =>
    limits.map(({ share, limit, clientsDenied, requestsDenied }) => [
      ...[window, `at most ${shareText(share)}`],
      ...[limit, clientsDenied, requestsDenied].map((count) => formatCount(count)),
    ]),
  );
  return tableOf(["Window", "Clients denied", "Limit", "Clients", "Requests denied"], rows, 2);
}

function histogramTable({ window, histogram }: WindowSuggestion): string {
  const rows = histogram.map((bar) => [rangeText(bar), formatCount(bar.clients)]);
  return folded(
    `Clients by the requests in their busiest window of ${window}`,
    tableOf(["Requests", "Clients"], rows, 0),
  );
}

function loudestTable(loudest: readonly LoudClient[], shortest: string): string {
  const rows = loudest.map((loud) => {
    const { client, busiest, busiestStart, requests, succeeded } = loud;
    return [
      markdownCode(client),
      ...[
        formatCount(busiest),
        busiestStart,
        formatCount(requests),
        formatPercent(succeeded / requests),
      ],
      markdownCode(loud.userAgents[0]?.text ?? ""),
      markdownCode(loud.paths[0]?.text ?? ""),
    ];
  });
  const headings = ["Client", `Most in ${shortest}`, "From", "Requests", "Succeeded"];
  return folded(
    "The loudest clients",
    tableOf([...headings, "User agent", "Path"], rows, 1, headings.length),
  );
}

/**
 * @param from the first column that is aligned to the right
 * @param to the first column after it that is not
 */
function tableOf(
  headings: readonly string[],
  rows: readonly (readonly string[])[],
  from: number,
  to = headings.length,
): string {
  const rules = headings.map((_, column) => (column >= from && column < to ? "--:" : "---"));
  return [headings, rules, ...rows].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function folded(title: string, text: string): string {
  return `<details><summary>${title}</summary>\n\n${text}\n\n</details>`;
}

/** The rule is ASCII, and backquotes end no block that begins with more of them. */
function fenced(rule: string): string {
  const longest = Math.max(2, ...[...rule.matchAll(/`+/g)].map(([run]) => run.length));
  const fence = "`".repeat(longest + 1);
  return `${fence}ts\n${rule}\n${fence}`;
}
