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
  const columns = [
    { label: "Window" },
    ...["Median", "p95", "p99", "Max", "Windows"].map((label) => ({ label, number: true })),
    { label: "Proposed", number: true },
    ...shares.map((share) => ({ label: `Denies ≤ ${shareText(share)}`, number: true })),
  ];
  const rows = windows.map(({ window, median, p95, p99, max, clientWindows, limits, proposed }) => {
    const numbers = [median, p95, p99, max, clientWindows];
    return html`<tr><th scope="row">${shown(window)}</th>${numbers.map((count) => html`<td class="number">${countText(count)}</td>`)}${limitCell(proposed)}${shares.map((share) => limitCell(limits.find((each) => each.share === share)))}</tr>`;
  });
  const caption =
    "Requests of one client in one window, and the lowest limits that deny at most this share of clients";
  return table({ caption, showsCaption: true, columns }, rows);
}

function limitCell(suggested: ProposedLimit | undefined): Html {
  if (!suggested) return html`<td class="number">–</td>`;
  const { limit, clientsDenied, requestsDenied } = suggested;
  return html`<td class="number"><b>${countText(limit)}</b><br><small>${counted(clientsDenied, "client")}</small><br><small>${counted(requestsDenied, "request")}</small></td>`;
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
    { label: `On a ${isLogarithmic ? "logarithmic" : "linear"} scale` },
    { label: "Limits" },
  ];
  const rows = bars.map((each) => {
    const { from, to, clients } = each;
    const tone = from > lowest ? "limited" : "allowed";
    const range = from === to ? countText(from) : `${countText(from)} – ${countText(to)}`;
    return html`<tr><th scope="row">${range}</th><td class="number">${countText(clients)}</td><td class="wide-bar">${bar(lengthOf(clients), tone)}</td><td>${limitBadges(each, suggestion)}</td></tr>`;
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
