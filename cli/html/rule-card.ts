import { counted, countText, percentText } from "../../src/admin/dashboard/format.ts";
import type { RuleReport, WorstWindow } from "../replay/report.ts";
import { deniedClients } from "./client-tables.ts";
import { type Fact, facts } from "./log-card.ts";
import { type Html, html } from "./markup.ts";
import { MODES, modeBadge } from "./rules-table.ts";
import type { StatedFacts } from "./stated-facts.ts";
import { table } from "./table.ts";
import { estimateText, knownText, rangeText, shown } from "./texts.ts";
import { halved, timelineCharts } from "./timeline-charts.ts";

const MAX_STEPS = 120;

interface CardOptions {
  readonly id: string;
  /** The maximum number of clients and of windows. */
  readonly rows: number;
  readonly hasChart: boolean;
  readonly stated: StatedFacts;
}

/** The details of a rule that denied requests. */
export function ruleCard(rule: RuleReport, options: CardOptions): Html {
  const { id, hasChart } = options;
  const { name, mode, requests, denied, deniedSucceeded } = rule;
  const { isEstimate, isDeniedEstimate } = rule;
  const { tone, denied: deniedName } = MODES[mode] ?? MODES.enforce;
  const context = `of the rule ${shown(name)}`;
  const succeeded: Fact = ["Had succeeded", knownText(deniedSucceeded)];
  const numbers = facts([
    ["Limits", shown(rule.limits)],
    ["Key", html`<code>${shown(rule.key)}</code>`],
    ["Requests", countText(requests)],
    [deniedName, `${countText(denied)} (${percentText(denied, requests)})`],
    ...(options.stated.statuses ? [succeeded] : []),
    [
      "Clients over the limit",
      `${estimateText(rule.clientsDenied, isDeniedEstimate)} of ${estimateText(rule.clients, isEstimate)}`,
    ],
  ]);
  return html`<article class="card rule" id="${id}" aria-labelledby="${id}-name"><h3 id="${id}-name">${shown(name)} ${modeBadge(mode)}</h3>
<p class="hint"><code>${shown(rule.match)}</code></p>
${numbers}
${hasChart && timelineCharts(shortened(rule.timeline), { context, denied: deniedName, tone })}
${clients(rule, options)}${windows(rule, options)}</article>
`;
}

/** The charts of all rules together are most of a report, so they have fewer steps than the chart of the total. */
function shortened(timeline: RuleReport["timeline"]) {
  return timeline.allowed.length > MAX_STEPS ? halved(timeline) : timeline;
}

function clients(
  { name, mode, mostDenied, clientsDenied }: RuleReport,
  { rows, stated }: CardOptions,
): Html | false {
  const listed = mostDenied.slice(0, rows);
  const heading =
    clientsDenied > listed.length
      ? `The ${counted(listed.length, "client")} most denied`
      : "Denied clients";
  const caption = `${heading} by the rule ${shown(name)}`;
  const content = deniedClients(caption, listed, stated, MODES[mode]?.tone);
  return (
    listed.length > 0 &&
    html`<details class="printed" data-clients open><summary>${heading}</summary>${content}</details>
`
  );
}

function windows({ name, worstWindows }: RuleReport, { rows }: CardOptions): Html | false {
  const columns = [
    { label: "Window (UTC)" },
    { label: "Policy" },
    { label: "Requests", number: true },
    { label: "Over the limit", number: true },
  ];
  const row = ({ policy, start, end, requests, denied }: WorstWindow) => {
    const whole = requests === undefined ? "–" : countText(requests);
    return html`<tr><th scope="row">${rangeText(start, end)}</th><td>${shown(policy)}</td><td class="number">${whole}</td><td class="number">${countText(denied)}</td></tr>`;
  };
  const caption = `The worst windows of the rule ${shown(name)}`;
  const content = table({ caption, columns }, worstWindows.slice(0, rows).map(row));
  return (
    worstWindows.length > 0 &&
    html`<details class="printed"><summary>Worst windows</summary>${content}</details>
`
  );
}
