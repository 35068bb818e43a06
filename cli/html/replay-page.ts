import { counted, countText, dollarsText, percentText } from "../../src/admin/dashboard/format.ts";
import type { ReplayReport } from "../replay/report.ts";
import { withoutReasons } from "../replay/summary.ts";
import { deniedClients } from "./client-tables.ts";
import { comparisonSection } from "./comparison-section.ts";
import { costCard } from "./cost-card.ts";
import { documentOf, type Section } from "./document.ts";
import { headlineOf } from "./headline.ts";
import { logCard } from "./log-card.ts";
import { type Html, html } from "./markup.ts";
import { leftOutRules, notes, notice } from "./notices.ts";
import { rulesSection } from "./rules-section.ts";
import { statedFacts } from "./stated-facts.ts";
import { estimateText, filesText, rangeText, shown } from "./texts.ts";
import { type Tile, tiles } from "./tiles.ts";
import { timelineCharts } from "./timeline-charts.ts";

/** Returns the report of `weir replay` as one HTML file, which loads nothing. The same report has the same page. */
export function replayPage(report: ReplayReport): string {
  const { title } = headlineOf(report);
  return documentOf({
    title,
    command: "weir replay",
    top: topOf(report),
    sections: sectionsOf(report),
  });
}

function topOf(report: ReplayReport): Html {
  const { log, config, leftOut } = report;
  const { title, lead } = headlineOf(report);
  const time = log.from && log.to ? `, ${rangeText(log.from, log.to)} UTC` : "";
  return html`<div class="headline"><p class="hint">Replay of <b>${filesText(log.files)}</b> under <b>${shown(config)}</b>${time}</p>
<h1>${title}</h1>
${lead.map((text) => html`<p class="lead">${text}</p>`)}</div>
${verdictNotices(report)}${leftOutRules(leftOut)}${notes(withoutReasons(report.notes, leftOut))}`;
}

/** What a reader of a failed or interrupted replay must know first. */
function verdictNotices({ failed, isPartial }: ReplayReport): Html[] {
  const failures = failed.map(({ option, allowed, clients }) => {
    const kind = option === "--max-newly-denied" ? "newly denied" : "denied";
    return notice(
      "bad",
      html`<p><b>${counted(clients, "client")} ${kind}, but <code>${option}</code> allows ${countText(allowed)}.</b></p>`,
    );
  });
  if (!isPartial) return failures;
  const text =
    "The replay was interrupted: this report is about the part of the log that was read.";
  return [notice("bad", html`<p><b>${text}</b></p>`), ...failures];
}

function sectionsOf(report: ReplayReport): Section[] {
  const { comparison, total, timeline, rules, cost } = report;
  const stated = statedFacts(report);
  const sections: Section[] = [];
  const add = (id: string, name: string, heading: string, content: Html) =>
    sections.push({ id, name, heading, content });
  if (comparison) {
    const heading = `Compared with ${shown(comparison.against)}`;
    add("comparison", "Comparison", heading, comparisonSection(comparison, report));
  }
  const names = { context: "of all rules", denied: "Denied", tone: "limited" } as const;
  add(
    "total",
    "Total",
    "All requests",
    html`${tiles(totalTiles(report))}${timelineCharts(timeline, names)}`,
  );
  if (rules.length > 0) add("rules", "Rules", "Rules", rulesSection(rules, stated));
  if (total.mostDenied.length > 0) {
    const content = deniedClients("The clients most denied, by address", total.mostDenied, stated);
    add("clients", "Clients", "Addresses most denied", html`<div class="card">${content}</div>\n`);
  }
  if (cost) add("cost", "Cost", "Cost of the store", costCard(cost));
  add(
    "log",
    "Log",
    "How this was made",
    logCard(report.log, [
      ["Configuration", shown(report.config)],
      ["Decided", decidedText(report)],
    ]),
  );
  return sections;
}

function decidedText({ isolates }: ReplayReport): string {
  if (isolates === undefined) return "exactly, by one store";
  return `as ${counted(isolates, "isolate")} with leases and caches`;
}

function totalTiles(report: ReplayReport): Tile[] {
  const { total, cost } = report;
  const stated = statedFacts(report);
  const { requests, unmatched, denied, deniedSucceeded, clients, clientsDenied } = total;
  const { isEstimate, isDeniedEstimate } = total;
  const all: Tile[] = [
    {
      label: "Requests",
      tone: "allowed",
      value: requests,
      note: `${percentText(unmatched, requests)} match no rule`,
    },
    {
      label: "Denied",
      tone: "limited",
      value: denied,
      note: `${percentText(denied, requests)} of all requests`,
    },
    {
      label: "Denied, had succeeded",
      tone: "undecided",
      value: deniedSucceeded ?? "unknown",
      note: stated.statuses ? "status below 400" : "the log states no statuses",
      bad: (deniedSucceeded ?? 0) > 0,
    },
    {
      label: "Clients denied",
      value: stated.addresses ? clientsDenied : "unknown",
      isEstimate: isDeniedEstimate,
      note: stated.addresses
        ? `${percentText(clientsDenied, clients)} of ${estimateText(clients, isEstimate)} addresses`
        : "the log states no addresses",
    },
  ];
  if (cost) {
    const { dollars, dollarsPer30Days } = cost;
    all.push({
      label: dollarsPer30Days === undefined ? "Store cost" : "Store cost of 30 days",
      value: dollarsText(dollarsPer30Days ?? dollars),
      note: `${countText(cost.count)} ${cost.unit} in the log`,
    });
  }
  return all;
}
