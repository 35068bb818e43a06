import { counted, countText } from "../../src/admin/dashboard/format.ts";
import type { ProposedLimit, SuggestedBot, Suggestion } from "../suggest/suggestion.ts";
import { documentOf, type Section } from "./document.ts";
import { logCard, lossNotice } from "./log-card.ts";
import { loudestClients } from "./loudest-clients.ts";
import { type Html, html } from "./markup.ts";
import { notes } from "./notices.ts";
import { table } from "./table.ts";
import { filesText, rangeText, shareText, shown } from "./texts.ts";
import { type Tile, tiles } from "./tiles.ts";
import { requestChart } from "./timeline-charts.ts";
import { windowHistograms, windowsTable } from "./window-suggestions.ts";

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
      : html`${isEstimate && "about "}${counted(clients, "client")} sent ${counted(requests, "request")} that match <code>${shown(match)}</code>. A client is what the key <code>${shown(key)}</code> tells apart.`;
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
          value: `${countText(first.proposed.limit)} per ${shown(first.window)}`,
          note: deniedText(first.proposed),
        },
      ]
    : [];
  const shares = first.limits.map(
    ({ share, limit, ...denied }): Tile => ({
      label: `Denies at most ${shareText(share)} of clients`,
      value: `${countText(limit)} per ${shown(first.window)}`,
      note: deniedText({ limit, ...denied }),
    }),
  );
  return [...proposed, ...shares];
}

function deniedText({ clientsDenied, requestsDenied }: ProposedLimit): string {
  return `denies ${counted(clientsDenied, "client")}, ${counted(requestsDenied, "request")}`;
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
    return html`<tr><th scope="row">${shown(category)}</th><td class="number">${countText(requests)}</td><td class="number">${countText(busiest)}</td></tr>`;
  });
  return table({ caption, showsCaption: true, columns }, rows);
}
