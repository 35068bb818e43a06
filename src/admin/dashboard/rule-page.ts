import type { StatisticsQuery, StatisticsReport } from "../../control/protocol.ts";
import { noRuleSums, type RuleSums } from "../../statistics/sums.ts";
import { formatCount, formatDuration, formatPercent } from "../format.ts";
import type { RuleView } from "../operations.ts";
import { chart } from "./chart.ts";
import {
  badge,
  bar,
  type Column,
  denialsPath,
  facts,
  foreign,
  type Html,
  html,
  modeBadge,
  openBar,
  ruleLink,
  rulePath,
} from "./components.ts";
import { type DashboardContext, mayChange } from "./forms.ts";
import { attempt, faultPage, headingWithRanges, page, unavailable } from "./layout.ts";
import { limitedClients, overrideCard, ruleOverrideForm } from "./overrides-page.ts";
import { queryOf, rangeOf } from "./ranges.ts";
import { ruleCharts } from "./traffic-charts.ts";

/** A rule with its sums in a report. */
export interface RuleRow {
  readonly rule: RuleView;
  readonly sums: RuleSums;
}

/** Returns the sums of a rule; zeros if the report has none. */
export function sumsOf(
  report: Pick<StatisticsReport, "rules"> | undefined,
  name: string,
): RuleSums {
  // A rule may have the name "constructor", which every object inherits.
  const sums = report && Object.hasOwn(report.rules, name) ? report.rules[name] : undefined;
  // During a deploy, the control object may have an older version, which lacks some sums.
  return { ...noRuleSums(), ...sums };
}

/** Returns the number of requests over the limit of a rule, denied or not. */
function exceededCount({ limited, marked, over, shadowLimited }: RuleSums): number {
  return limited + marked + over + shadowLimited;
}

/** Returns the largest used part of the limit of any client of a rule, as a percentage; `–` if unknown or 0. */
function peakText({ peak }: RuleSums): string {
  return peak > 0 ? formatPercent(peak, 1) : "–";
}

/** The numbers by which rules are ordered, the highest first. */
const BY = {
  requests: ({ requests }: RuleSums) => requests,
  limited: ({ limited }: RuleSums) => limited,
  peak: ({ peak }: RuleSums) => peak,
  share: (sums: RuleSums) => exceededCount(sums) / Math.max(1, sums.requests),
  shadow: ({ shadowLimited }: RuleSums) => shadowLimited,
} as const;

/** The orders in which rules can be listed. */
export type RuleOrder = keyof typeof BY | "name";

export function isRuleOrder(text: string | undefined): text is RuleOrder {
  return text !== undefined && (text === "name" || Object.hasOwn(BY, text));
}

/** Returns rules in an order. Equal rules keep the order of the configuration. */
export function sortedRules(rows: readonly RuleRow[], order: RuleOrder): RuleRow[] {
  if (order === "name") return rows.toSorted((a, b) => (a.rule.name < b.rule.name ? -1 : 1));
  return rows.toSorted((a, b) => BY[order](b.sums) - BY[order](a.sums));
}

/** The columns of tables of rules. */
export const RULE_COLUMNS = {
  rule: {
    label: "Rule",
    cell: ({ rule }) => [
      ruleLink(rule.name),
      modeBadge(rule.mode),
      rule.override && badge("override"),
    ],
  },
  requests: { label: "Requests", number: true, cell: ({ sums }) => formatCount(sums.requests) },
  peak: {
    label: "Peak use",
    number: true,
    cell: ({ rule, sums }) => [
      peakText(sums),
      bar(sums.peak, rule.mode === "shadow" ? "shadow" : "limited"),
    ],
  },
  share: {
    label: "Over the limit",
    number: true,
    cell: ({ sums }) => formatPercent(exceededCount(sums), sums.requests),
  },
} as const satisfies Record<string, Column<RuleRow>>;

export async function rulePage(c: DashboardContext) {
  const { operations } = c.var;
  const name = c.req.param("name") ?? "";
  const range = rangeOf(c.req.query("range"));
  const now = Date.now();
  const query = queryOf(range, now, name);
  const [rules, report] = await Promise.all([
    attempt(() => operations.rules()),
    attempt(() => operations.statistics(query)),
  ]);
  if (rules.fault !== undefined) return faultPage(c, "The rules cannot be read", rules.fault, 503);
  const rule = rules.value.find((each) => each.name === name);
  if (!rule) return faultPage(c, "No such rule", `The configuration has no rule ${name}.`, 404);
  const heading = [foreign(name), rule.mode === "enforce" ? badge("enforced") : badge(rule.mode)];
  return page(c, {
    title: name,
    section: "/_weir/rules",
    refresh: `${rulePath(name)}?range=${range.id}`,
    content: html`${headingWithRanges(heading, rulePath(name), range)}
<p class="note">Why does it apply to a request, or not? <a href="/_weir/explain">Explain a request</a>.
Which clients did it deny? <a href="${denialsPath({ rule: name })}">Denials</a></p>
<div class="card">${facts(factsOf(rule))}</div>
${report.value ? trafficOf(rule, report.value, query, now) : unavailable("The traffic", report.fault)}
<div class="columns">${report.value && limitedClients(report.value, now, true)}
<section class="card"><h2>Override of this rule</h2>
${
  rule.override
    ? overrideCard(c, rule.override, now)
    : html`<p class="note">None: the rule does what the configuration says.</p>`
}
${mayChange(c) && ruleOverrideForm(c, rule)}</section></div>`,
  });
}

/** Returns a limit as a text. If it differs by client: its source, with the highest and the usual number. */
export function limitText({ limit, source }: RuleView["limits"][number], noun?: string): string {
  const number = formatCount(limit, noun);
  return source ? `${source.from}, at most ${formatCount(source.max)}, default ${number}` : number;
}

function factsOf(rule: RuleView): [string, string][] {
  const extras = [rule.hasTiers && "tiers", rule.hasBan && "a ban"].filter(Boolean).join(" and ");
  const facts: [string, string | false | undefined][] = [
    ["Matches", rule.match],
    ["Counts", rule.key],
    ...rule.limits.map((each): [string, string] => [
      each.policy,
      each.concurrent ? limitText(each, "open request") : `${limitText(each)} in ${each.window}`,
    ]),
    ["Waits", rule.waitMs !== undefined && `up to ${formatDuration(rule.waitMs)}`],
    ["Passes ahead", rule.async && "before the store has decided"],
    ["If the store fails", rule.onError],
    ["Has", extras],
    ["Configured mode", rule.configuredMode !== rule.mode && rule.configuredMode],
  ];
  return facts.filter((fact): fact is [string, string] => Boolean(fact[1]));
}

function trafficOf(
  { name, limits }: RuleView,
  report: StatisticsReport,
  query: StatisticsQuery,
  now: number,
): Html {
  const sums = sumsOf(report, name);
  const open = limits.flatMap((each) =>
    each.concurrent ? { ...each, limit: each.source?.max ?? each.limit } : [],
  );
  const charts = ruleCharts(query, report.buckets, report.ruleBuckets ?? [], now);
  const title = `Requests per ${query.resolution}`;
  return html`<p id="lead" data-live><b>${formatCount(sums.requests)}</b> requests, of which
<b>${formatPercent(exceededCount(sums), sums.requests)}</b> were over the limit: ${formatCount(sums.limited)} denied,
${formatCount(sums.shadowLimited)} would have been denied in shadow mode, ${formatCount(sums.marked)} marked.
${sums.ahead > 0 && `${formatCount(sums.ahead)} passed ahead of the store, which denied ${formatCount(sums.over)} of them later.`}
Peak use of the limit by one client: <b>${peakText(sums)}</b></p>
${open.length > 0 && html`<div class="card" id="open" data-live>${open.map((each) => openBar(each, sums.openPeak, "open requests, the highest number of one client"))}</div>`}
<div class="columns">${chart({ id: "requests", title, data: charts.requests })}
${chart({ id: "denials", title: "Live and shadow denials", data: charts.denials })}</div>`;
}
