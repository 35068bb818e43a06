import { counted, countText } from "../../src/admin/dashboard/format.ts";
import type { HistogramBar, ProposedLimit, WindowSuggestion } from "../suggest/suggestion.ts";
import { bar } from "./bar.ts";
import { type Html, html } from "./markup.ts";
import { table } from "./table.ts";
import { shareText, shown } from "./texts.ts";

/** From this ratio of the longest bar to the shortest one, bars have a logarithmic scale. */
const LOGARITHMIC_RATIO = 50;

/** How many requests clients send in windows of each length, and the limits that follow. */
export function windowsTable(windows: readonly WindowSuggestion[]): Html {
  const shares = [
    ...new Set(windows.flatMap(({ limits }) => limits.map(({ share }) => share))),
  ].sort((a, b) => b - a);
  const names = ["Proposed", ...shares.map((share) => `Denies ≤ ${shareText(share)}`)];
  const statistics = ["Median", "p95", "p99", "Max", "Windows"];
  const columns = [
    { label: "Window" },
    ...[...names, ...statistics].map((label) => ({ label, number: true })),
  ];
  const rows = windows.map((each) => {
    const { window, limits, proposed, median, p95, p99, max, clientWindows } = each;
    const suggested = shares.map((share) => limits.find((limit) => limit.share === share));
    const cells = [
      ...[proposed, ...suggested].map(limitText),
      ...[median, p95, p99, max, clientWindows].map((count) => html`${countText(count)}`),
    ];
    return html`<tr><th scope="row">${shown(window)}</th>${cells.map((text, index) => html`<td class="number" data-label="${columns[index + 1]?.label}">${text}</td>`)}</tr>`;
  });
  const caption =
    "The lowest limits that deny at most this share of clients, and the requests of one client in one window";
  return table({ caption, showsCaption: true, columns, cards: true }, rows);
}

function limitText(suggested: ProposedLimit | undefined): Html {
  if (!suggested) return html`–`;
  const { limit, clientsDenied, requestsDenied } = suggested;
  return html`<b>${countText(limit)}</b> <small>${counted(clientsDenied, "client")}</small> <small>${counted(requestsDenied, "request")}</small>`;
}

/** For each window, the clients by their busiest window. */
export function windowHistograms(windows: readonly WindowSuggestion[]): Html {
  return html`<div class="columns">${windows.map(histogram)}</div>
`;
}

function histogram(suggestion: WindowSuggestion): Html | false {
  const { window, histogram: bars, limits, proposed } = suggestion;
  if (bars.length === 0) return false;
  const counts = bars.map(({ clients }) => clients).filter((count) => count > 0);
  const max = Math.max(1, ...counts);
  const isLogarithmic = max / Math.min(...counts) >= LOGARITHMIC_RATIO;
  const lengthOf = (count: number) =>
    isLogarithmic ? Math.log1p(count) / Math.log1p(max) : count / max;
  // Bars above the limit are clients that the rule would deny.
  const lowest = proposed?.limit ?? Math.min(...limits.map(({ limit }) => limit));
  const columns = [
    { label: "Requests" },
    { label: "Clients", number: true },
    { label: `On a ${isLogarithmic ? "logarithmic" : "linear"} scale, with the limits` },
  ];
  const rows = bars.map((each) => {
    const { from, to, clients } = each;
    const tone = from > lowest ? "limited" : "allowed";
    const range = from === to ? countText(from) : `${countText(from)} – ${countText(to)}`;
    return html`<tr><th scope="row" class="nowrap">${range}</th><td class="number">${countText(clients)}</td><td class="wide-bar"><div>${bar(lengthOf(clients), tone)}${limitBadges(each, suggestion)}</div></td></tr>`;
  });
  const heading = `Clients by their busiest window of ${shown(window)}`;
  return html`<div class="card"><h3>${heading}</h3>${table({ caption: heading, columns }, rows)}</div>
`;
}

/** The limits that are in the range of a bar. */
function limitBadges({ from, to }: HistogramBar, { proposed, limits }: WindowSuggestion): Html[] {
  const named = limits.map(({ share, limit }) => ({ name: shareText(share), limit, kind: "" }));
  const all = proposed
    ? [{ name: "proposed", limit: proposed.limit, kind: " proposed" }, ...named]
    : named;
  return all
    .filter(({ limit }) => from <= limit && limit <= to)
    .map(({ name, limit, kind }) => {
      return html`<span class="badge${kind}">${name}: ${countText(limit)}</span> `;
    });
}
