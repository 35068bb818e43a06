import { formatCount } from "../../src/admin/format.ts";
import type {
  HistogramBar,
  ProposedLimit,
  SuggestedBot,
  Suggestion,
  WindowSuggestion,
} from "../suggest/suggestion.ts";
import {
  bar,
  filesText,
  type Html,
  html,
  notes,
  rangeText,
  shareText,
  shown,
  type Tile,
  table,
  tiles,
} from "./components.ts";
import { documentOf, type Section } from "./document.ts";
import { logCard, lossNotice, loudestClients } from "./log-card.ts";
import { requestChart } from "./replay-page.ts";

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
      ...[median, p95, p99, max, clientWindows].map((count) => html`${formatCount(count)}`),
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
  return html`<b>${formatCount(limit)}</b> <small>${formatCount(clientsDenied, "client")}</small> <small>${formatCount(requestsDenied, "request")}</small>`;
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
    const range = from === to ? formatCount(from) : `${formatCount(from)} – ${formatCount(to)}`;
    return html`<tr><th scope="row" class="nowrap">${range}</th><td class="number">${formatCount(clients)}</td><td class="wide-bar"><div>${bar(lengthOf(clients), tone)}${limitBadges(each, suggestion)}</div></td></tr>`;
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
      return html`<span class="badge${kind}">${name}: ${formatCount(limit)}</span> `;
    });
}

/** The maximum length of the match in the title, in characters. */
const MAX_TITLE = 80;

/** Returns the report of `weir suggest` as one HTML file, which loads nothing. The same report has the same page. */
export function suggestPage(suggestion: Suggestion): string {
  const title = `Limits for ${shown(suggestion.match, MAX_TITLE)}`;
  return documentOf({
    title,
    command: "weir suggest",
    top: topOf(suggestion, title),
    sections: sectionsOf(suggestion),
  });
}

function topOf(suggestion: Suggestion, title: string): Html {
  const { log, match, key, requests, clients, isEstimate, rule, windows } = suggestion;
  const time = log.from && log.to ? `, ${rangeText(log.from, log.to)} UTC` : "";
  const lead =
    requests === 0
      ? html`No request of the logs matches <code>${shown(match)}</code>, so there is nothing to learn from.`
      : html`${isEstimate && "about "}${formatCount(clients, "client")} sent ${formatCount(requests, "request")} that match <code>${shown(match)}</code>. A client is what the key <code>${shown(key)}</code> tells apart.`;
  return html`<div class="headline"><p class="hint">From <b>${filesText(log.files)}</b>${time}</p>
<h1>${title}</h1>
<p class="lead">${lead}</p></div>
${notes(suggestion.notes)}${lossNotice(log)}${windows.length > 0 && tiles(limitTiles(suggestion))}${rule !== undefined && ruleToPaste(rule, suggestion.config)}`;
}

/** The limits of the first window. The table has those of all windows. */
function limitTiles({ windows: [first] }: Suggestion): Tile[] {
  if (!first) return [];
  const proposed: Tile[] = first.proposed
    ? [
        {
          label: "Proposed",
          tone: "memory",
          value: `${formatCount(first.proposed.limit)} per ${shown(first.window)}`,
          note: deniedText(first.proposed),
        },
      ]
    : [];
  const shares = first.limits.map(
    ({ share, limit, ...denied }): Tile => ({
      label: `Denies at most ${shareText(share)} of clients`,
      value: `${formatCount(limit)} per ${shown(first.window)}`,
      note: deniedText({ limit, ...denied }),
    }),
  );
  return [...proposed, ...shares];
}

function deniedText({ clientsDenied, requestsDenied }: ProposedLimit): string {
  return `denies ${formatCount(clientsDenied, "client")}, ${formatCount(requestsDenied, "request")}`;
}

/**
 * The text is not shortened and keeps its lines, because users paste it.
 *
 * @param config the file of a rule that exists already, for which only limits are suggested
 */
function ruleToPaste(rule: string, config: string | undefined): Html {
  const [heading, hint] =
    config === undefined
      ? ["The rule", html`Add it to <code>rules</code> in weir.config.ts.`]
      : ["The limits", html`Replace the limits of the rule in <code>${shown(config)}</code>.`];
  return html`<div class="card paste"><div class="paste-head"><h2>${heading}, ready to paste</h2><span><button type="button" data-copy="rule" hidden>Copy</button> <output></output></span></div>
<p class="hint">${hint}</p>
<pre id="rule" tabindex="0">${rule}</pre></div>
`;
}

function sectionsOf(suggestion: Suggestion): Section[] {
  const { windows, timeline, loudest, bots, log, match, key } = suggestion;
  const sections: Section[] = [];
  const add = (id: string, name: string, heading: string, content: Html) =>
    sections.push({ id, name, heading, content });
  if (windows.length > 0) {
    const content = html`<div class="card">${windowsTable(windows)}</div>\n${windowHistograms(windows)}`;
    add("windows", "Windows", "Requests per client and window", content);
  }
  const chart = requestChart(timeline, "that match");
  if (chart) add("time", "Time", "Requests over time", chart);
  if (loudest.length > 0) {
    const content = html`<div class="card">${loudestClients(loudest)}</div>\n`;
    add("loudest", "Clients", "The loudest clients", content);
  }
  if (bots.length > 0) {
    add("bots", "Bots", "Verified bots", html`<div class="card">${botTable(bots)}</div>\n`);
  }
  const facts = [
    ["Requests that match", shown(match)],
    ["Key", shown(key)],
    ["Name of the rule", shown(suggestion.name)],
  ] as const;
  add("log", "Log", "How this was made", logCard(log, facts));
  return sections;
}

function botTable(bots: readonly SuggestedBot[]): Html {
  const caption = "Verified bots by category. The numbers above are without them.";
  const columns = [
    { label: "Category" },
    { label: "Requests", number: true },
    { label: "Most in one window", number: true },
  ];
  const rows = bots.map(({ category, requests, busiest }) => {
    return html`<tr><th scope="row">${shown(category)}</th><td class="number">${formatCount(requests)}</td><td class="number">${formatCount(busiest)}</td></tr>`;
  });
  return table({ caption, showsCaption: true, columns }, rows);
}
