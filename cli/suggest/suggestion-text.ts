import { count, styled, table, time } from "../admin/text.ts";
import { fitted, padded, WIDTH, wrapped } from "../print/fit-text.ts";
import { counted } from "../print/numbers.ts";
import { canPrintUnicode } from "../print/unicode.ts";
import { loudestText } from "./loudest-text.ts";
import { clientsText, pasted, rangeText, shareText } from "./numbers-text.ts";
import type { Suggestion, WindowSuggestion } from "./suggestion.ts";

const BAR_WIDTH = 60;
const BAR = canPrintUnicode() ? "█" : "#";

/** Returns a suggestion as a report for a terminal, at most 120 columns wide, but for the rule. */
export function suggestionText(suggestion: Suggestion): string {
  const { windows, loudest, bots, rule, requests } = suggestion;
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
    bots.length === 0 ? "" : botTable(suggestion, shortest),
    rule === undefined ? "" : section(`${pasted(suggestion)}, ready to paste`, rule),
  ];
  return sections.filter((text) => text !== "").join("\n\n");
}

/** Returns a text below a title. */
function section(title: string, text: string): string {
  return `${styled("bold", title)}\n${text}`;
}

function headline({ match, key, requests, clients, isEstimate, log }: Suggestion): string {
  const { from, to } = log;
  const period = from && to ? `, from ${time(Date.parse(from))} to ${time(Date.parse(to))}` : "";
  const numbers = `${counted(requests, "request")} of ${clientsText(clients, isEstimate)}, in ${counted(log.lines, "line")}${period}`;
  return [
    ...wrapped(`Limits for ${match}, counted by ${key}`, WIDTH).map((line) => styled("bold", line)),
    ...wrapped(numbers, WIDTH),
  ].join("\n");
}

function notesText({ notes, log }: Suggestion): string {
  const broken = log.brokenLines.map(
    ({ file, line, reason, text }) => `${file}:${line}: ${reason}: ${text}`,
  );
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
  const headings = ["WINDOW", "MEDIAN", "95 %", "99 %", "MOST", "CLIENT WINDOWS"];
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
    return `${padded(ranges[index] ?? "", width, "left")}  ${bar}${count(clients)}`;
  });
  return section(`Clients by the requests in their busiest window of ${window}`, lines.join("\n"));
}

function botTable({ bots }: Suggestion, shortest: string): string {
  const rows = bots.map(({ category, requests, busiest }) => [
    fitted(category, 60),
    ...[requests, busiest],
  ]);
  const text = table(["CATEGORY", "REQUESTS", `MOST OF ONE CLIENT IN ${shortest}`], rows);
  return section("Verified bots, which are not part of the clients", text);
}
