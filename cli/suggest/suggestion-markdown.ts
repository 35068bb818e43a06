import { count } from "../admin/text.ts";
import { markdownCode, markdownText } from "../print/markdown-text.ts";
import { counted, percent } from "../print/numbers.ts";
import { clientsText, pasted, rangeText, shareText } from "./numbers-text.ts";
import type { LoudClient, Suggestion, WindowSuggestion } from "./suggestion.ts";

/** Returns a suggestion as Markdown. No text of the log can become a link, an image or HTML in it. */
export function suggestionMarkdown(suggestion: Suggestion): string {
  const { windows, loudest, bots, rule, notes, requests } = suggestion;
  const shortest = windows[0]?.window ?? "";
  const sections = [
    headline(suggestion),
    notes.map(({ text }) => `- ${markdownText(text)}`).join("\n"),
    requests === 0 ? "" : limitTable(windows),
    ...(rule === undefined ? [] : [`${pasted(suggestion)}, ready to paste:`, fenced(rule)]),
    ...windows.filter(({ histogram }) => histogram.length > 0).map(histogramTable),
    loudest.length === 0 ? "" : loudestTable(loudest, shortest),
    bots.length === 0 ? "" : botTable(suggestion, shortest),
  ];
  return sections.filter((text) => text !== "").join("\n\n");
}

function headline({ match, key, requests, clients, isEstimate, log }: Suggestion): string {
  const { from, to } = log;
  const period = from && to ? `, from ${from} to ${to}` : "";
  return [
    `## Limits for ${markdownCode(match)}, counted by ${markdownCode(key)}`,
    `${counted(requests, "request")} of ${clientsText(clients, isEstimate)}, in ${counted(log.lines, "line")}${period}.`,
  ].join("\n\n");
}

function limitTable(windows: readonly WindowSuggestion[]): string {
  const rows = windows.flatMap(({ window, limits }) =>
    limits.map(({ share, limit, clientsDenied, requestsDenied }) => [
      ...[window, `at most ${shareText(share)}`],
      ...[limit, clientsDenied, requestsDenied].map(count),
    ]),
  );
  return tableOf(["Window", "Clients denied", "Limit", "Clients", "Requests denied"], rows, 2);
}

function histogramTable({ window, histogram }: WindowSuggestion): string {
  const rows = histogram.map((bar) => [rangeText(bar), count(bar.clients)]);
  return folded(
    `Clients by the requests in their busiest window of ${window}`,
    tableOf(["Requests", "Clients"], rows, 0),
  );
}

function loudestTable(loudest: readonly LoudClient[], shortest: string): string {
  const rows = loudest.map((loud) => {
    const { client, claimsToBe, busiest, busiestStart, requests, succeeded } = loud;
    return [
      markdownCode(client),
      claimsToBe === undefined ? "" : markdownText(`claims to be ${claimsToBe}`),
      ...[count(busiest), busiestStart, count(requests), percent(succeeded / requests)],
      markdownCode(loud.userAgents[0]?.text ?? ""),
      markdownCode(loud.paths[0]?.text ?? ""),
    ];
  });
  const headings = ["Client", "", `Most in ${shortest}`, "From", "Requests", "Succeeded"];
  return folded(
    "The loudest clients",
    tableOf([...headings, "User agent", "Path"], rows, 2, headings.length),
  );
}

function botTable({ bots }: Suggestion, shortest: string): string {
  const rows = bots.map(({ category, requests, busiest }) => [
    markdownCode(category),
    ...[requests, busiest].map(count),
  ]);
  const table = tableOf(["Category", "Requests", `Most of one client in ${shortest}`], rows, 1);
  return folded("Verified bots, which are not part of the clients", table);
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
